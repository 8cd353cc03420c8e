//! Requests to RADIUS servers and their replies (RFC 2865, 2866). Requests from servers are in `requests`.
//!
//! The protocol is in the `aaa` crate; this module owns the sockets and connects it to the edge.
//! Start with [`Radius::work`].

use std::io;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::served::Edge;
use aaa::accounting::SessionId;
use aaa::dynauth::DynauthCounters;
use aaa::radius::{AccessRequest, Client, Event, Proof, Rejection};
use anyhow::Result;
use base::{Datagram, Duration, Instant, Machine};
use edge::{Admission, Question, Refusal, SubscriberKey};
use ledger::Options;
use reactor::{Reactor, RecvBatch, Slice};

use super::accounts::Accounts;
use super::line::Place;
use super::requests::Door;
use super::rules::Rules;
use super::sockets::Sockets;
use super::{REFUSAL, WELCOME};
use crate::config;

/// Number of datagrams read at a time.
const BATCH: usize = 64;
/// Accounting entries that are taken between two looks at the clock.
const ACCOUNTS: u32 = 32;
/// Interval at which the counters of each open session are stored, for the case that the daemon is
/// killed.
const CHECKPOINT: Duration = Duration::from_secs(60);
/// Sessions stored in a turn, and the pause before the next ones: 6,400 in a second.
const CHECKPOINT_PART: usize = 64;
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(10);

/// The client of RADIUS servers.
pub(crate) struct Radius {
    client: Client,
    accounts: Accounts,
    sockets: Sockets,
    authenticates: bool,
    /// Whether a server is configured for accounting.
    accounts_at_servers: bool,
    received: RecvBatch,
    composed: Vec<u8>,
    door: Option<Door>,
    checkpoint: Checkpoint,
    /// Ignored replies, including those that were not for a known socket.
    ignored: u64,
    /// Whether entries of the edge wait for the next turn.
    has_accounts: bool,
}

/// The walk that stores the counters of open sessions.
struct Checkpoint {
    /// When the present round began.
    begun: Instant,
    /// When the walk goes on.
    at: Instant,
    cursor: u32,
}

/// Wall-clock time, in seconds since 1970.
pub(super) fn wall_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

impl Radius {
    /// Opens the record store and the socket for Disconnect-Requests. Sockets to servers are opened
    /// when they are first needed.
    pub(crate) fn open(
        settings: &config::Radius,
        seed: [u8; 32],
        reactor: &mut Reactor,
        now: Instant,
    ) -> Result<Self> {
        let boot = wall_s() as u32;
        let nas = settings.client.nas.clone();
        let mut accounts = Accounts::open(
            settings.store.as_deref(),
            Options {
                begin: give_up_privileges,
                ..Options::default()
            },
            nas,
            boot,
            now,
        )?;
        accounts.queue_vendor = settings.queue_vendor();
        accounts.close_left_open(|_, _| {});
        if settings.accounts() {
            accounts.on_or_off(true, wall_s());
        }
        let door = settings.disconnect.as_ref();
        let door = door.map(|door| Door::open(door, reactor)).transpose()?;
        let authenticates = settings.authenticates();
        Ok(Self {
            client: Client::new(settings.client.clone(), seed)?,
            accounts,
            sockets: Sockets::default(),
            authenticates,
            accounts_at_servers: settings.accounts(),
            received: RecvBatch::new(BATCH),
            composed: Vec::new(),
            door,
            ignored: 0,
            has_accounts: false,
            checkpoint: Checkpoint {
                begun: now,
                at: now + CHECKPOINT,
                cursor: 0,
            },
        })
    }

    /// Takes over the servers, the senders of Disconnect-Requests and the address for these. Returns what could not be
    /// applied: the start of the keys, and why.
    pub(crate) fn reload(
        &mut self,
        settings: &config::Radius,
        reactor: &mut Reactor,
        now: Instant,
    ) -> Vec<(&'static str, String)> {
        let mut failed = Vec::new();
        let accounted = self.accounts_at_servers;
        match self.client.reload(settings.client.clone(), now) {
            Ok(()) => {
                self.accounts.queue_vendor = settings.queue_vendor();
                self.authenticates = settings.authenticates();
                self.accounts_at_servers = settings.accounts();
                let services = self.client.services();
                let peers: Vec<SocketAddr> = services.map(|service| service.address).collect();
                self.sockets.keep(&peers, reactor);
                if self.accounts_at_servers && !accounted {
                    self.accounts.on_or_off(true, wall_s());
                }
            }
            Err(error) => failed.push(("radius.server", error.to_string())),
        }
        if let Err(error) = Door::reload(&mut self.door, settings.disconnect.as_ref(), reactor) {
            failed.push(("radius.disconnect", format!("{error:#}")));
        }
        failed
    }

    /// Whether a server is configured for authentication.
    pub(super) fn authenticates(&self) -> bool {
        self.authenticates
    }

    /// The Acct-Session-Id of an account.
    pub(super) fn account(&self, number: u64) -> String {
        let boot = self.accounts.boot();
        SessionId { boot, number }.to_string()
    }

    /// The protocol client.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Counters of the delivery and of the records on disk.
    pub(crate) fn totals(&self) -> (aaa::accounting::DeliveryTotals, Option<ledger::Stats>, u64) {
        let (delivery, stored) = self.accounts.totals();
        (delivery, stored, self.accounts.lost)
    }

    /// Counters of Disconnect-Requests and CoA-Requests, if they are enabled.
    pub(crate) fn disconnects(&self) -> Option<DynauthCounters> {
        self.door.as_ref().map(Door::counters)
    }

    /// Sends an Access-Request for a subscriber.
    pub(super) fn ask(
        &mut self,
        question: &Question,
        edge: &mut Edge,
        rules: &Rules,
        now: Instant,
    ) {
        let boot = self.accounts.boot();
        ask(&mut self.client, boot, question, (edge, rules), now);
    }

    /// Reads a socket to a server.
    pub(crate) fn receive(&mut self, place: u32, now: Instant) -> io::Result<()> {
        let Self {
            client,
            sockets,
            received,
            ignored,
            ..
        } = self;
        sockets.receive(place, received, |route, bytes| {
            *ignored += u64::from(client.handle(Datagram { route, bytes }, now).is_err());
        })
    }

    /// Reads Disconnect-Requests and CoA-Requests.
    pub(crate) fn receive_requests(&mut self, now: Instant) -> io::Result<()> {
        if let Some(door) = &mut self.door {
            self.ignored += door.receive(&mut self.received, now)?;
        }
        Ok(())
    }

    /// Closes a socket to a server after a failure.
    pub(crate) fn lose(&mut self, place: u32, reactor: &mut Reactor) {
        self.sockets.lose(place, reactor);
    }

    /// Opens a lost socket to a server again.
    pub(crate) fn reopen(&mut self, place: u32, reactor: &mut Reactor) -> io::Result<()> {
        self.sockets.reopen(place, reactor)
    }

    /// Why accounting records cannot be written to the disk.
    pub(crate) fn store_failure(&self) -> Option<String> {
        self.accounts.store_failure()
    }

    /// A socket to a server that could not be opened, and why.
    pub(crate) fn take_failed(&mut self) -> Option<(u32, io::Error)> {
        self.sockets.take_failed()
    }

    /// The server of a socket.
    pub(crate) fn server_of(&self, place: u32) -> Option<SocketAddr> {
        self.sockets.server_of(place)
    }

    /// Closes the socket for Disconnect-Requests after a failure.
    pub(crate) fn lose_door(&mut self, reactor: &mut Reactor) {
        if let Some(door) = &mut self.door {
            door.lose(reactor);
        }
    }

    /// Opens the socket for Disconnect-Requests again.
    pub(crate) fn reopen_door(&mut self, reactor: &mut Reactor) -> io::Result<()> {
        match &mut self.door {
            Some(door) => door.open_socket(reactor),
            None => Ok(()),
        }
    }

    /// When [`Radius::work`] is due if no datagram arrives.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let client = self.client.poll_timeout().map(|(at, _)| at);
        let accounts = self.accounts.poll_timeout();
        let checkpoint = self.accounts.keeps_open().then_some(self.checkpoint.at);
        client.into_iter().chain(accounts).chain(checkpoint).min()
    }

    /// Does all due work: time-outs, accounting records, replies to authentication requests,
    /// datagrams.
    pub(crate) fn work(
        &mut self,
        edge: &mut Edge,
        rules: &mut Rules,
        reactor: &mut Reactor,
        slice: Slice,
        now: Instant,
    ) {
        if self.client.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.client.handle_timeout(now);
        }
        self.accounts.handle_timeout(now);
        self.heed(edge, rules, now);
        if let Some(door) = &mut self.door {
            door.work(edge, self.accounts.boot(), now);
        }
        let wall = wall_s();
        let mut taken = 0u32;
        self.has_accounts = false;
        while let Some(account) = edge.poll_account() {
            self.accounts.take(&account, edge, wall);
            taken += 1;
            if taken.is_multiple_of(ACCOUNTS) && slice.is_over() {
                self.has_accounts = true;
                break;
            }
        }
        self.checkpoint(edge, now, wall);
        let servers = |user: &[u8]| rules.servers(user);
        self.accounts.work(&mut self.client, servers, now, wall);
        self.send(reactor, now);
    }

    /// Stores the counters of some open sessions, if that is due.
    fn checkpoint(&mut self, edge: &Edge, now: Instant, wall: u64) {
        let Self {
            accounts,
            checkpoint,
            ..
        } = self;
        if checkpoint.at > now || !accounts.keeps_open() {
            return;
        }
        if checkpoint.cursor == 0 {
            checkpoint.begun = now;
        }
        for _ in 0..CHECKPOINT_PART {
            let Some((cursor, account)) = edge.next_account(checkpoint.cursor, now) else {
                checkpoint.cursor = 0;
                let pause = now + CHECKPOINT_PAUSE;
                checkpoint.at = pause.max(checkpoint.begun + CHECKPOINT);
                return;
            };
            checkpoint.cursor = cursor;
            if let Some(account) = account {
                accounts.keep_open(&account, edge, wall);
            }
        }
        checkpoint.at = now + CHECKPOINT_PAUSE;
    }

    fn heed(&mut self, edge: &mut Edge, rules: &mut Rules, now: Instant) {
        while let Some(event) = self.client.poll_event() {
            heed(event, &mut self.accounts, (edge, rules), now);
        }
    }

    fn send(&mut self, reactor: &mut Reactor, now: Instant) {
        loop {
            self.composed.clear();
            let Some(to) = self.client.poll_transmit(now, &mut self.composed) else {
                break;
            };
            self.sockets
                .push(to.peer, to.socket, &self.composed, reactor);
        }
        self.sockets.flush();
        if let Some(door) = &mut self.door {
            door.send();
        }
    }

    /// Queues the Accounting-Off record.
    pub(crate) fn end(&mut self) {
        self.accounts.on_or_off(false, wall_s());
    }

    /// Whether accounting entries of the edge or requests of servers are left over from the last turn.
    pub(super) fn has_work(&self) -> bool {
        self.has_accounts || self.door.as_ref().is_some_and(Door::has_work)
    }

    /// Whether no record is on its way.
    pub(crate) fn is_idle(&self) -> bool {
        self.accounts.is_idle()
    }

    /// Commits records that are not on disk yet.
    pub(crate) fn close(&mut self) {
        self.accounts.close();
    }
}

/// Sends an Access-Request for a subscriber.
pub(super) fn ask(
    client: &mut Client,
    boot: u32,
    question: &Question,
    (edge, rules): (&mut Edge, &Rules),
    now: Instant,
) {
    let key = question.subscriber;
    let proof = match &question.claim.proof {
        ppp::Proof::None => Proof::Pap { password: b"" },
        ppp::Proof::Pap { password, .. } => Proof::Pap {
            password: password.reveal(),
        },
        ppp::Proof::Chap {
            identifier,
            challenge,
            response,
        } => Proof::Chap {
            identifier: *identifier,
            challenge,
            response,
        },
        ppp::Proof::MsChapV2 {
            identifier,
            challenge,
            response,
        } => Proof::MsChapV2 {
            identifier: *identifier,
            challenge,
            response,
        },
        ppp::Proof::Eap {
            packet, state, mtu, ..
        } => Proof::Eap {
            packet: packet.reveal(),
            state,
            mtu: *mtu,
        },
    };
    let Some(view) = edge.subscriber(key) else {
        return;
    };
    let place = Place::new(edge, key, view.place, view.numbers);
    let request = AccessRequest {
        user: rules.asked_of_servers(question),
        proof,
        session: SessionId {
            boot,
            number: view.account,
        },
        line: place.line(),
        servers: rules.servers(&question.claim.name),
    };
    let asked = client.authenticate(now, &request, key.to_token());
    if let Err(why) = asked {
        let why = (Refusal::NoServer, &*why.to_string());
        edge.refuse(key, why, REFUSAL, now);
    }
}

/// Handles an event of the RADIUS client.
pub(super) fn heed(
    event: Event,
    accounts: &mut Accounts,
    (edge, rules): (&mut Edge, &mut Rules),
    now: Instant,
) {
    match event {
        Event::Accepted {
            token,
            mut profile,
            message,
            left_out,
        } => {
            let key = SubscriberKey::from_token(token);
            rules.accepted(key, &mut profile, edge);
            let admission = Admission {
                profile: *profile,
                is_remote: true,
                left_out: left_out.iter().map(ToString::to_string).collect(),
                ..Admission::default()
            };
            let text = message.as_deref().map_or(WELCOME, str::as_bytes);
            edge.admit(key, admission, text, now);
        }
        Event::Rejected {
            token,
            why,
            message,
        } => {
            let key = SubscriberKey::from_token(token);
            let text = message.as_deref().map_or(REFUSAL, str::as_bytes);
            if why == Rejection::Server {
                rules.rejected(key, edge, now);
            }
            let why = (Refusal::Rejected, &*why.to_string());
            edge.refuse(key, why, text, now);
        }
        Event::Challenged {
            token,
            request,
            state,
            wait,
        } => {
            let challenge = ppp::Challenge {
                request: &request,
                state: &state,
                interval: wait,
            };
            edge.challenge(SubscriberKey::from_token(token), challenge, now);
        }
        Event::Failed { token, why } => {
            let key = SubscriberKey::from_token(token);
            let why = (Refusal::NoServer, &*why.to_string());
            edge.refuse(key, why, REFUSAL, now);
        }
        Event::Recorded { token } => accounts.recorded(token),
        Event::RecordFailed { token, .. } => accounts.failed(token, now),
        Event::ServerDead { server, purpose } => {
            tracing::warn!(server, purpose = purpose.name(), "a RADIUS server is dead");
        }
        Event::ServerUp { server, purpose } => {
            tracing::info!(
                server,
                purpose = purpose.name(),
                "a RADIUS server lives again"
            );
        }
    }
}

/// The thread that writes the store needs no privileges, so it may start before they are dropped.
fn give_up_privileges() {
    if let Err(error) = reactor::drop_capabilities() {
        tracing::warn!(%error, "the thread of the accounting store keeps its privileges");
    }
}
