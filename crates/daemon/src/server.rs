//! The control socket: accepts clients and serves them in turn. A client that does not read fills
//! its own buffers and delays no other client. If a client closes its connection, the daemon still carries out each
//! request whose line arrived whole, except those that only read. The requests themselves are in `jobs`; start with
//! [`Server::serve`].

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use base::slab::Key;
use base::{Instant, Slab};
use hashbrown::HashMap;
use l2tp::TunnelKey;
use reactor::unix::Counted;
use reactor::{Interest, Reactor, Readiness, Slice, Token};

use super::capture::Captures;
use super::client::{Steps, ms};
use super::core::Core;
use super::health::Outcome;
use super::jobs::{Client, Job};
use super::reload::Answer;
use super::source::Source;
use super::waiting::{WaitFor, Waiter, Waiters};
use crate::config;
use control::lines::Heard;
use control::reply::{self, Code, Created, Refusal};

/// Request steps done in one turn, over all clients.
const STEPS: usize = 512;

/// Mode of the socket's file: its owner and group may use it.
const MODE: u32 = 0o660;

/// A client and its connection.
struct Connection {
    stream: UnixStream,
    /// `None` only until it is watched.
    token: Option<Token>,
    client: Client,
    /// Whether the client is in `work`, the list of clients to serve.
    listed: bool,
}

/// The control socket and its clients.
pub(super) struct Server {
    /// `None` while it is lost.
    listener: Option<UnixListener>,
    token: Option<Token>,
    path: PathBuf,
    /// The socket that the service manager opened; the socket's file is the manager's then.
    inherited: Option<UnixListener>,
    connections: Slab<Connection>,
    /// Clients with pending work, served in turn.
    work: Vec<Key>,
    waiters: Waiters,
    captures: Captures,
    /// There was no room for a client when one last asked.
    was_full: bool,
}

impl Server {
    /// Opens the control socket, or takes the one that the service manager opened.
    ///
    /// # Errors
    /// Another daemon answers on the socket, or the path cannot be used.
    pub(super) fn open(
        control: &config::Control,
        inherited: Option<UnixListener>,
        reactor: &mut Reactor,
    ) -> io::Result<Self> {
        let mut server = Self {
            listener: None,
            token: None,
            path: control.socket.clone(),
            inherited,
            connections: Slab::new(),
            work: Vec::new(),
            waiters: HashMap::new(),
            captures: Captures::default(),
            was_full: false,
        };
        server.reopen(reactor)?;
        Ok(server)
    }

    /// Opens the control socket again after [`Server::lose`]. Connected clients stay connected.
    pub(super) fn reopen(&mut self, reactor: &mut Reactor) -> io::Result<()> {
        let listener = match &self.inherited {
            Some(inherited) => inherited.try_clone()?,
            None => reactor::unix::listen(&self.path, MODE)?,
        };
        let source = Source::Listener.to_bits();
        let token = reactor.add_from_reserve(&listener, "control", source, Interest::READ)?;
        (self.listener, self.token) = (Some(listener), Some(token));
        Ok(())
    }

    /// Closes the control socket after a failure.
    pub(super) fn lose(&mut self, reactor: &mut Reactor) {
        if let Some(token) = self.token.take() {
            reactor.remove(token);
        }
        self.listener = None;
    }

    /// Removes the socket's file, unless the service manager owns it.
    pub(super) fn remove_socket(&self) {
        if self.inherited.is_some() {
            return;
        }
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(%error, "the control socket's name could not be removed");
        }
    }

    /// Number of clients.
    pub(super) fn len(&self) -> usize {
        self.connections.len()
    }

    /// Whether a client has work to do now.
    pub(super) fn has_work(&self) -> bool {
        !self.work.is_empty()
    }

    /// Accepts new clients. Without room, they wait for a turn, in which clients that have closed their connections are
    /// served and leave; then they are refused.
    pub(super) fn accept(&mut self, core: &mut Core) -> Outcome {
        let clients_max = core.running.clients_max();
        let is_full = self.len() >= clients_max;
        let refuses = is_full && self.was_full;
        self.was_full = is_full;
        loop {
            if !refuses && self.len() >= clients_max {
                return Outcome::Again;
            }
            let Some(listener) = &self.listener else {
                return Outcome::Again;
            };
            match reactor::unix::accept(listener) {
                Ok(Some(stream)) => self.welcome(stream, core),
                Ok(None) => return Outcome::Again,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.into(),
            }
        }
    }

    fn welcome(&mut self, stream: UnixStream, core: &mut Core) {
        let mut client = Client::default();
        if self.len() >= core.running.clients_max() {
            let message = format!("{} control clients are connected already", self.len());
            client.close_with(&Refusal::new(Code::Limit, message));
            // An empty socket buffer has room for the refusal; if it does not fit, it is dropped.
            client.write(&mut Counted(&stream));
            return;
        }
        let key = self.connections.insert(Connection {
            stream,
            token: None,
            client,
            listed: false,
        });
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let (stream, source) = (&connection.stream, Source::Client(key.index).to_bits());
        let reactor = &mut core.reactor;
        match reactor.add_from_reserve(stream, "control client", source, Interest::READ) {
            Ok(token) => connection.token = Some(token),
            Err(error) => {
                tracing::warn!(%error, "a control client cannot be served");
                self.connections.remove(key);
            }
        }
    }

    /// A client's connection is ready.
    pub(super) fn ready(&mut self, place: u32, readiness: Readiness) {
        let Some(key) = self.connections.key_at(place) else {
            return;
        };
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        let heard = if readiness.readable() {
            connection.client.read(&mut Counted(&connection.stream))
        } else {
            Heard::Fine
        };
        if readiness.hangup() || heard == Heard::Lost {
            connection.client.hang_up();
        }
        self.list(key);
    }

    fn list(&mut self, key: Key) {
        if let Some(connection) = self.connections.get_mut(key)
            && !std::mem::replace(&mut connection.listed, true)
        {
            self.work.push(key);
        }
    }

    /// Continues the requests of every client, in turn, each up to its share. The clients that are left when the slice
    /// is over come first in the next turn.
    pub(super) fn serve(&mut self, core: &mut Core, slice: Slice) {
        let mut work = std::mem::take(&mut self.work).into_iter();
        let share = (STEPS / work.len().max(1)).max(16);
        let clients = self.len();
        for key in work.by_ref() {
            let Self {
                connections,
                waiters,
                captures,
                ..
            } = self;
            let Some(connection) = connections.get_mut(key) else {
                continue;
            };
            connection.listed = false;
            connection.client.take_lines();
            let mut steps = Steps::new(share, slice);
            while steps.are_left()
                && let Some(job) = connection.client.next_job()
            {
                let more = job.work(
                    &mut steps,
                    key,
                    &mut connection.client,
                    core,
                    (waiters, captures),
                    clients,
                );
                if let Some(job) = more {
                    connection.client.keep(job);
                }
            }
            self.settle(key, core);
            if slice.is_over() {
                break;
            }
        }
        let served = std::mem::take(&mut self.work);
        self.work = work.chain(served).collect();
    }

    /// Writes the output of listed clients.
    pub(super) fn flush(&mut self, core: &mut Core) {
        let work = std::mem::take(&mut self.work);
        for key in work {
            if let Some(connection) = self.connections.get_mut(key) {
                connection.listed = false;
                self.settle(key, core);
            }
        }
    }

    /// Writes output, updates the client's interest, and lists the client again if it has more work.
    fn settle(&mut self, key: Key, core: &mut Core) {
        let Some(connection) = self.connections.get_mut(key) else {
            return;
        };
        if connection.client.write(&mut Counted(&connection.stream)) == Heard::Lost {
            connection.client.hang_up();
        }
        if connection.client.is_done() {
            return self.close(key, core);
        }
        let client = &connection.client;
        let mut interest = Interest::NONE;
        if client.wants_input() {
            interest = interest.with(Interest::READ);
        }
        if client.has_output() {
            interest = interest.with(Interest::WRITE);
        }
        let goes_on = client.can_work();
        let token = connection.token;
        if token.is_none_or(|token| core.reactor.set_interest(token, interest).is_err()) {
            return self.close(key, core);
        }
        if goes_on {
            self.list(key);
        }
    }

    /// Passes captured packets on; returns whether there were any.
    pub(super) fn hand_out(&mut self, core: &mut Core) -> bool {
        if !core.edge.has_tapped() {
            return false;
        }
        let Self {
            connections,
            captures,
            work,
            ..
        } = self;
        let mut got = Vec::new();
        captures.hand_out(
            core,
            connections,
            |connection| &mut connection.client,
            |client| got.push(client),
        );
        for key in got {
            if let Some(connection) = connections.get_mut(key)
                && !std::mem::replace(&mut connection.listed, true)
            {
                work.push(key);
            }
        }
        true
    }

    fn close(&mut self, key: Key, core: &mut Core) {
        self.captures.gone(key, core);
        // A connection is closed only after the reactor no longer watches it.
        let gone = self.connections.remove(key);
        if let Some(token) = gone.as_ref().and_then(|gone| gone.token) {
            core.reactor.remove(token);
        }
    }

    /// Notifies the client that waits for `what`, which is now up.
    pub(super) fn up(&mut self, what: WaitFor, now: Instant) {
        if let Some(waiter) = self.take_waiter(what) {
            let Waiter {
                tunnel,
                session,
                since,
                ..
            } = waiter;
            let ms = Some(ms(since, now));
            self.tell(
                &waiter,
                Created {
                    tunnel,
                    session,
                    up: Some(true),
                    ms,
                    reason: None,
                },
            );
        }
    }

    /// Notifies the client that waits for `what`, which failed or ended.
    pub(super) fn down(&mut self, what: WaitFor, reason: &dyn Display, now: Instant) {
        if let Some(waiter) = self.take_waiter(what) {
            let Waiter {
                tunnel,
                session,
                since,
                ..
            } = waiter;
            let reason = reason.to_string();
            let (ms, reason) = (Some(ms(since, now)), Some(reason.as_str()));
            self.tell(
                &waiter,
                Created {
                    tunnel,
                    session,
                    up: Some(false),
                    ms,
                    reason,
                },
            );
        }
    }

    /// Makes the client that waits for `what` wait for the end of `tunnel` instead. Returns `false`
    /// if another client already waits for that end.
    pub(super) fn defer(&mut self, what: WaitFor, tunnel: TunnelKey) -> bool {
        let tunnel = WaitFor::Tunnel(tunnel);
        if self.waiters.contains_key(&tunnel) {
            return false;
        }
        if let Some(waiter) = self.take_waiter(what) {
            self.waiters.insert(tunnel, waiter);
        }
        true
    }

    /// Answers the client that asked for a reload, unless it has gone.
    pub(super) fn reloaded(&mut self, answer: Answer) {
        let Answer { client, id, result } = answer;
        let Some(connection) = self.connections.get_mut(client) else {
            return;
        };
        match result {
            Ok(report) => connection.client.resume(Some(Job::reloaded(id, report))),
            Err(refusal) => {
                reply::refused(connection.client.out(), id, &refusal);
                connection.client.resume(None);
            }
        }
        self.list(client);
    }

    fn take_waiter(&mut self, what: WaitFor) -> Option<Waiter> {
        if self.waiters.is_empty() {
            None
        } else {
            self.waiters.remove(&what)
        }
    }

    fn tell(&mut self, waiter: &Waiter, created: Created<'_>) {
        // The client may have disconnected meanwhile.
        if let Some(connection) = self.connections.get_mut(waiter.client) {
            connection.client.settle(waiter.ticket, created);
            self.list(waiter.client);
        }
    }
}
