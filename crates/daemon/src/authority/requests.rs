//! Disconnect-Requests and CoA-Requests from servers and other clients (RFC 5176): the socket that receives them, the
//! sessions that they select, and what is done to these.
//!
//! A name, an address, an Acct-Session-Id, a NAS-Port or an IPv6 prefix in a request leads to its sessions at once. A
//! request with none of these is compared with every session; there is one such request a turn, so that a flood of them
//! holds up nothing else. Start with [`Door::work`].

use std::io;
use std::net::SocketAddr;

use aaa::Change;
use aaa::accounting::SessionId;
use aaa::dynauth::{Cause, Dynauth, DynauthCounters, Identity, Order, Request, Selection};
use anyhow::{Context, Result};
use base::{Datagram, Instant, Route};
use edge::{ChangeRefusal, Phase, SubscriberKey};
use reactor::{Interest, Reactor, RecvBatch, SendBatch, Token, UdpOptions, UdpSocket};

use super::line::Place;
use super::noted::note_change;
use super::radius::wall_s;
use crate::config;
use crate::served::{Edge, End};
use crate::source::Source;

/// Limit of queued replies.
const REPLIES: usize = 256;
/// Receive buffer: room for thousands of requests that arrive at once.
const BUFFER_BYTES: usize = 4 << 20;

/// The socket that receives requests, and the requests.
pub(super) struct Door {
    dynauth: Dynauth,
    /// The address of the configuration, and the one that is bound.
    listen: SocketAddr,
    address: SocketAddr,
    /// `None` while the socket is lost.
    socket: Option<(UdpSocket, Token)>,
    out: SendBatch,
    composed: Vec<u8>,
    /// A request that waits for the next turn, because it is compared with every session.
    waiting: Option<Request>,
}

impl Door {
    pub(super) fn open(settings: &config::Disconnects, reactor: &mut Reactor) -> Result<Self> {
        let address = settings.listen;
        let mut door = Self {
            dynauth: Dynauth::new(settings.dynauth.clone()),
            listen: address,
            address,
            socket: None,
            out: SendBatch::new(REPLIES),
            composed: Vec::new(),
            waiting: None,
        };
        door.open_socket(reactor)
            .with_context(|| format!("cannot listen for Disconnect-Requests on {address}"))?;
        Ok(door)
    }

    /// Opens the socket, or a lost one again.
    pub(super) fn open_socket(&mut self, reactor: &mut Reactor) -> io::Result<()> {
        let options = UdpOptions {
            recv_buffer_bytes: Some(BUFFER_BYTES),
            ..UdpOptions::default()
        };
        let socket = UdpSocket::bind(self.address, &options)?;
        // The kernel may have chosen the port.
        self.address = socket.local_addr();
        let source = Source::Disconnect.to_bits();
        let token = reactor.add(&socket, "radius disconnect", source, Interest::READ)?;
        self.socket = Some((socket, token));
        Ok(())
    }

    /// Closes the socket after a failure.
    pub(super) fn lose(&mut self, reactor: &mut Reactor) {
        if let Some((_, token)) = self.socket.take() {
            reactor.remove(token);
        }
    }

    /// Moves the socket to another address, where that is asked for, and takes over the clients. The old socket stays if
    /// the new one cannot be opened.
    pub(super) fn reload(
        own: &mut Option<Self>,
        wanted: Option<&config::Disconnects>,
        reactor: &mut Reactor,
    ) -> Result<()> {
        let is_there = |door: &&mut Self| wanted.is_some_and(|new| new.listen == door.listen);
        if let (Some(door), Some(new)) = (own.as_mut().filter(is_there), wanted) {
            door.take_over(new);
            return Ok(());
        }
        let mut opened = wanted.map(|new| Self::open(new, reactor)).transpose()?;
        if let Some(mut old) = own.take() {
            old.lose(reactor);
            // The requests that were answered already are recognised at the new address too.
            if let (Some(door), Some(new)) = (&mut opened, wanted) {
                (door.dynauth, door.waiting) = (old.dynauth, old.waiting);
                door.take_over(new);
            }
        }
        *own = opened;
        Ok(())
    }

    fn take_over(&mut self, new: &config::Disconnects) {
        self.dynauth.set_clients(new.dynauth.clients.clone());
        self.dynauth.set_queue(new.dynauth.queue);
    }

    /// Counters of requests and replies.
    pub(super) fn counters(&self) -> DynauthCounters {
        self.dynauth.counters()
    }

    /// Reads requests. Returns how many were ignored.
    pub(super) fn receive(&mut self, received: &mut RecvBatch, now: Instant) -> io::Result<u64> {
        let Some((socket, _)) = &mut self.socket else {
            return Ok(0);
        };
        socket.recv(received)?;
        let (wall, mut ignored) = (wall_s(), 0);
        for datagram in received.iter() {
            let route = Route {
                peer: datagram.peer,
                local: datagram.local,
                socket: 0,
            };
            let bytes = datagram.bytes;
            let input = Datagram { route, bytes };
            ignored += u64::from(self.dynauth.handle(input, now, wall).is_err());
        }
        Ok(ignored)
    }

    /// Whether a request waits for the next turn.
    pub(super) fn has_work(&self) -> bool {
        self.waiting.is_some()
    }

    /// Carries out the requests that were received.
    pub(super) fn work(&mut self, edge: &mut Edge, boot: u32, now: Instant) {
        let mut may_walk = true;
        while let Some(request) = self.waiting.take().or_else(|| self.dynauth.poll_event()) {
            let walks = !is_found_at_once(&request.selection);
            if walks && !may_walk {
                self.waiting = Some(request);
                return;
            }
            may_walk &= !walks;
            let answer = carry_out(&request, edge, boot, now);
            self.dynauth.answer(request.ticket, answer);
        }
    }

    /// Sends the replies.
    pub(super) fn send(&mut self) {
        loop {
            self.composed.clear();
            let Some(route) = self.dynauth.poll_transmit(&mut self.composed) else {
                break;
            };
            if self.out.is_full() {
                self.flush();
            }
            self.out.push(&self.composed, route.peer, route.local);
        }
        self.flush();
    }

    /// A reply for which the socket has no room is dropped: the client repeats its request.
    fn flush(&mut self) {
        if let Some((socket, _)) = &mut self.socket {
            socket.send(&mut self.out);
        }
        self.out.clear();
    }
}

/// Does what a request asks for, to every session that it selects or to none.
fn carry_out(request: &Request, edge: &mut Edge, boot: u32, now: Instant) -> Result<(), Cause> {
    let meant = meant(&request.selection, edge, boot);
    if meant.is_empty() {
        return Err(Cause::NotFound);
    }
    let client = request.client;
    match &request.order {
        Order::Disconnect { class } => {
            if !class.is_empty() {
                let change = Change {
                    class: Some(class.clone()),
                    ..Change::default()
                };
                // Those that are not admitted yet have no Stop record.
                let _ = edge.change_sessions(&meant, &change, now);
            }
            for key in &meant {
                edge.drop_subscriber(*key, End::Disconnected, now);
            }
            tracing::info!(client, ended = meant.len(), "Disconnect-Request");
            Ok(())
        }
        Order::Change(change) => {
            let changed = edge.change_sessions(&meant, change, now);
            let account = |number| Some(SessionId { boot, number }.to_string());
            note_change(
                ("radius", Some(client)),
                &meant,
                (change, changed.as_ref().err()),
                edge,
                account,
            );
            match &changed {
                Ok(()) => tracing::debug!(client, changed = meant.len(), "CoA-Request"),
                Err(why) => tracing::debug!(client, %why, "CoA-Request refused"),
            }
            changed.map_err(|why| cause(&why))
        }
    }
}

/// The Error-Cause of a change that is impossible.
fn cause(why: &ChangeRefusal) -> Cause {
    match why {
        ChangeRefusal::Gone | ChangeRefusal::NotAdmitted => Cause::NotFound,
        ChangeRefusal::Client => Cause::Prohibited,
        ChangeRefusal::Switched(_) => Cause::UnsupportedAttribute,
        ChangeRefusal::Several => Cause::MultipleSessions,
        ChangeRefusal::NoFilter(_) | ChangeRefusal::NoGarden(_) | ChangeRefusal::Queue(_) => {
            Cause::InvalidValue
        }
        ChangeRefusal::Held(_) | ChangeRefusal::Full => Cause::Unavailable,
    }
}

/// Whether an attribute leads to the sessions, so that not every session is compared.
fn is_found_at_once(selection: &Selection) -> bool {
    selection.session.is_some()
        || selection.user.is_some()
        || selection.address.is_some()
        || selection.port.is_some()
        || !selection.prefixes.is_empty()
}

/// The sessions that a request selects. One that is ending is no longer selected, and our own clients never are.
fn meant(selection: &Selection, edge: &Edge, boot: u32) -> Vec<SubscriberKey> {
    let is_meant = |key: &SubscriberKey| is_meant(*key, selection, edge, boot);
    if selection.session.is_some() {
        let session = selection.session_id().filter(|id| id.boot == boot);
        let found = session.and_then(|id| edge.at_account(id.number));
        return found.into_iter().filter(is_meant).collect();
    }
    if let Some(name) = &selection.user {
        return edge.find(name).filter(is_meant).collect();
    }
    if let Some(address) = selection.address {
        let found = edge.at_address(address.into());
        return found.into_iter().filter(is_meant).collect();
    }
    if let Some(port) = selection.port {
        return edge.at_port(port).into_iter().filter(is_meant).collect();
    }
    if let Some(prefix) = selection.prefixes.first() {
        let found = edge.at_prefix(*prefix);
        return found.into_iter().filter(is_meant).collect();
    }
    let mut cursor = 0;
    let mut found = Vec::new();
    while let Some((next, view)) = edge.next_subscriber(cursor) {
        cursor = next;
        // The cheap comparisons come first: the line's text is made for each session.
        let interface = view.ipv6.map(|[_, peer]| peer.to_be_bytes());
        let calling = view.numbers.map_or(&b""[..], |numbers| &numbers.calling);
        let differs = (selection.interface.is_some() && selection.interface != interface)
            || (selection.calling.as_deref()).is_some_and(|wanted| wanted != calling);
        if !differs && is_meant(&view.key) {
            found.push(view.key);
        }
    }
    found
}

fn is_meant(key: SubscriberKey, selection: &Selection, edge: &Edge, boot: u32) -> bool {
    let Some(view) = edge.subscriber(key) else {
        return false;
    };
    if view.is_client || view.phase == Phase::Ending {
        return false;
    }
    let place = Place::new(edge, key, view.place, view.numbers);
    let networks = view.profile.map_or(&[][..], |profile| &profile.routes);
    selection.matches(&Identity {
        session: SessionId {
            boot,
            number: view.account,
        },
        user: view.name,
        line: place.line(),
        address: view.address,
        interface: view.ipv6.map(|[_, peer]| peer.to_be_bytes()),
        networks,
        leases: [
            view.leases.prefix,
            view.leases.delegated,
            view.leases.address,
        ],
    })
}
