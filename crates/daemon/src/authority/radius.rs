//! Requests to RADIUS servers and their replies, and Disconnect-Requests from servers (RFC 2865,
//! 2866, 5176).
//!
//! The protocol is in the `aaa` crate; this module owns the sockets and connects it to the edge.
//! Start with [`Radius::work`].

use std::io;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::served::{Edge, End};
use aaa::accounting::{Authentic, SessionId, Subscriber};
use aaa::dynauth::{Answer, Disconnect, Dynauth, DynauthCounters};
use aaa::radius::{AccessRequest, Client, Event, Proof};
use anyhow::{Context, Result};
use base::{Datagram, Duration, Instant, Machine, Route};
use edge::{Admission, Question, Refusal, SubscriberKey};
use ledger::Options;
use reactor::{Interest, Reactor, RecvBatch, SendBatch, Slice, Token, UdpOptions, UdpSocket};

use super::accounts::Accounts;
use super::line::Place;
use super::sockets::Sockets;
use super::{REFUSAL, WELCOME};
use crate::config;
use crate::source::Source;

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
/// Limit of queued replies to Disconnect-Requests.
const REPLIES: usize = 64;

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

/// The socket that receives Disconnect-Requests.
struct Door {
    dynauth: Dynauth,
    /// The address of the configuration, and the one that is bound.
    listen: SocketAddr,
    address: SocketAddr,
    /// `None` while the socket is lost.
    socket: Option<(UdpSocket, Token)>,
    out: SendBatch,
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
        if let Err(error) = self.reload_door(settings.disconnect.as_ref(), reactor) {
            failed.push(("radius.disconnect", format!("{error:#}")));
        }
        failed
    }

    /// Moves the socket for Disconnect-Requests to another address, where that is asked for. The old socket stays if the
    /// new one cannot be opened.
    fn reload_door(
        &mut self,
        wanted: Option<&config::Disconnects>,
        reactor: &mut Reactor,
    ) -> Result<()> {
        let is_there = |door: &&mut Door| wanted.is_some_and(|new| new.listen == door.listen);
        if let (Some(door), Some(new)) = (self.door.as_mut().filter(is_there), wanted) {
            door.dynauth.set_clients(new.dynauth.clients.clone());
            return Ok(());
        }
        let mut opened = wanted.map(|new| Door::open(new, reactor)).transpose()?;
        if let Some(old) = self.door.take() {
            if let Some((_, token)) = old.socket {
                reactor.remove(token);
            }
            // The requests that were answered already are recognised at the new address too.
            if let (Some(door), Some(new)) = (&mut opened, wanted) {
                door.dynauth = old.dynauth;
                door.dynauth.set_clients(new.dynauth.clients.clone());
            }
        }
        self.door = opened;
        Ok(())
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

    /// Counters of Disconnect-Requests, if they are enabled.
    pub(crate) fn disconnects(&self) -> Option<DynauthCounters> {
        self.door.as_ref().map(|door| door.dynauth.counters())
    }

    /// Sends an Access-Request for a subscriber.
    pub(super) fn ask(&mut self, question: &Question, edge: &mut Edge, now: Instant) {
        ask(&mut self.client, self.accounts.boot(), question, edge, now);
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

    /// Reads Disconnect-Requests.
    pub(crate) fn receive_requests(&mut self, now: Instant) -> io::Result<()> {
        let (Some(door), received) = (&mut self.door, &mut self.received) else {
            return Ok(());
        };
        let Some((socket, _)) = &mut door.socket else {
            return Ok(());
        };
        socket.recv(received)?;
        for datagram in received.iter() {
            let route = Route {
                peer: datagram.peer,
                local: datagram.local,
                socket: 0,
            };
            let bytes = datagram.bytes;
            let input = Datagram { route, bytes };
            self.ignored += u64::from(door.dynauth.handle(input, now, wall_s()).is_err());
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
        if let Some((_, token)) = self.door.as_mut().and_then(|door| door.socket.take()) {
            reactor.remove(token);
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
        reactor: &mut Reactor,
        slice: Slice,
        now: Instant,
    ) {
        if self.client.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.client.handle_timeout(now);
        }
        self.accounts.handle_timeout(now);
        self.heed(edge, now);
        self.disconnect(edge, now);
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
        self.accounts.work(&mut self.client, now, wall);
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

    fn heed(&mut self, edge: &mut Edge, now: Instant) {
        while let Some(event) = self.client.poll_event() {
            heed(event, &mut self.accounts, edge, now);
        }
    }

    /// Disconnects the subscribers that servers asked to disconnect.
    fn disconnect(&mut self, edge: &mut Edge, now: Instant) {
        let Some(door) = &mut self.door else { return };
        while let Some(wanted) = door.dynauth.poll_event() {
            let meant = meant(&wanted, edge, self.accounts.boot());
            let mut ended = 0;
            for key in &meant {
                ended += u32::from(edge.drop_subscriber(*key, End::Disconnected, now));
            }
            tracing::info!(client = wanted.client, ended, "Disconnect-Request");
            let answer = if meant.is_empty() {
                Answer::NotFound
            } else {
                Answer::Done
            };
            door.dynauth.answer(wanted.ticket, answer);
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
            loop {
                self.composed.clear();
                let Some(route) = door.dynauth.poll_transmit(&mut self.composed) else {
                    break;
                };
                door.out.push(&self.composed, route.peer, route.local);
            }
            if let Some((socket, _)) = &mut door.socket {
                socket.send(&mut door.out);
            }
            door.out.clear();
        }
    }

    /// Queues the Accounting-Off record.
    pub(crate) fn end(&mut self) {
        self.accounts.on_or_off(false, wall_s());
    }

    /// Whether accounting entries of the edge are left over from the last turn.
    pub(super) fn has_work(&self) -> bool {
        self.has_accounts
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
    edge: &mut Edge,
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
    };
    let Some(view) = edge.subscriber(key) else {
        return;
    };
    let place = Place::new(edge, key, view.place, view.numbers);
    let request = AccessRequest {
        user: &question.claim.name,
        proof,
        session: SessionId {
            boot,
            number: view.account,
        },
        line: place.line(),
    };
    let asked = client.authenticate(now, &request, key.to_token());
    if let Err(why) = asked {
        let why = (Refusal::NoServer, &*why.to_string());
        edge.refuse(key, why, REFUSAL, now);
    }
}

/// Handles an event of the RADIUS client.
pub(super) fn heed(event: Event, accounts: &mut Accounts, edge: &mut Edge, now: Instant) {
    match event {
        Event::Accepted {
            token,
            profile,
            message,
            left_out,
        } => {
            let admission = Admission {
                profile: *profile,
                is_remote: true,
                left_out: left_out.iter().map(ToString::to_string).collect(),
                ..Admission::default()
            };
            let text = message.as_deref().map_or(WELCOME, str::as_bytes);
            let key = SubscriberKey::from_token(token);
            edge.admit(key, admission, text, now);
        }
        Event::Rejected {
            token,
            why,
            message,
        } => {
            let key = SubscriberKey::from_token(token);
            let text = message.as_deref().map_or(REFUSAL, str::as_bytes);
            let why = (Refusal::Rejected, &*why.to_string());
            edge.refuse(key, why, text, now);
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

impl Door {
    fn open(settings: &config::Disconnects, reactor: &mut Reactor) -> Result<Self> {
        let address = settings.listen;
        let mut door = Self {
            dynauth: Dynauth::new(settings.dynauth.clone()),
            listen: address,
            address,
            socket: None,
            out: SendBatch::new(REPLIES),
        };
        door.open_socket(reactor)
            .with_context(|| format!("cannot listen for Disconnect-Requests on {address}"))?;
        Ok(door)
    }

    fn open_socket(&mut self, reactor: &mut Reactor) -> io::Result<()> {
        let socket = UdpSocket::bind(self.address, &UdpOptions::default())?;
        // The kernel may have chosen the port.
        self.address = socket.local_addr();
        let source = Source::Disconnect.to_bits();
        let token = reactor.add(&socket, "radius disconnect", source, Interest::READ)?;
        self.socket = Some((socket, token));
        Ok(())
    }
}

/// The sessions that a request names. A user name or an address in the request limits the search;
/// otherwise all sessions are compared.
fn meant(wanted: &Disconnect, edge: &Edge, boot: u32) -> Vec<SubscriberKey> {
    let is_meant = |key: SubscriberKey| {
        let Some(view) = edge.subscriber(key).filter(|view| !view.is_client) else {
            return false;
        };
        let place = Place::new(edge, key, view.place, view.numbers);
        let subscriber = Subscriber {
            user: view.name,
            line: place.line(),
            class: &[],
            address: view.address,
            interface_id: None,
            authentic: Authentic::Radius,
        };
        let session = SessionId {
            boot,
            number: view.account,
        };
        wanted.selection.matches(session, &subscriber)
    };
    match (&wanted.selection.user, wanted.selection.address) {
        (Some(name), _) => edge.find(name).filter(|&key| is_meant(key)).collect(),
        (None, Some(address)) => {
            let holder = edge.subscriber_at(address);
            holder.into_iter().filter(|&key| is_meant(key)).collect()
        }
        (None, None) => {
            let mut cursor = 0;
            let mut found = Vec::new();
            while let Some((next, view)) = edge.next_subscriber(cursor) {
                cursor = next;
                if is_meant(view.key) {
                    found.push(view.key);
                }
            }
            found
        }
    }
}

/// The thread that writes the store needs no privileges, so it may start before they are dropped.
fn give_up_privileges() {
    if let Err(error) = reactor::drop_capabilities() {
        tracing::warn!(%error, "the thread of the accounting store keeps its privileges");
    }
}
