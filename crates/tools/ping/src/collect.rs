//! Collects input: replies, the kernel's transmit times, network errors, and signals.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ping::{Protocol, Reply, text};
use reactor::timed::{ErrorSource, NetworkError, TimedPacket};
use reactor::{Signals, StatusRequests, clock};

use super::background::Tap;
use super::engine::{Engine, PAUSE};
use super::hi::View as Shown;
use super::packets::{Whose, explain, plain};
use super::resolve::is_address;

/// Tags of the signals' descriptors.
pub(super) const SIGNALS: u64 = u64::MAX;
pub(super) const REQUESTS: u64 = u64::MAX - 1;
pub(super) const STOP: u64 = u64::MAX - 2;

/// Who may stop the run or ask for its state.
pub(super) enum Wishes {
    /// The user, by signals.
    User {
        signals: Signals,
        requests: StatusRequests,
    },
    /// Another command, in which the run is a thread.
    Command(Arc<Tap>),
}

impl Wishes {
    /// Blocks the signals and receives them as a descriptor. Call it before any thread starts: threads started earlier
    /// would not have them blocked.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn new() -> std::io::Result<Wishes> {
        Ok(Wishes::User {
            signals: Signals::new()?,
            requests: StatusRequests::new()?,
        })
    }
}

impl Engine<'_> {
    /// Processes what sockets and signals have received.
    pub(super) fn collect(&mut self) {
        let mut ready = std::mem::take(&mut self.scratch.ready);
        ready.clear();
        while let Some(one) = self.reactor.next_ready() {
            match one.user {
                SIGNALS => self.signal(),
                REQUESTS => self.status(),
                STOP => self.stop(),
                lane => ready.push(lane as u32),
            }
        }
        for &lane in &ready {
            self.collect_lane(lane as usize);
        }
        self.scratch.ready = ready;
    }

    /// The first signal stops sending; the second ends the run at once. A signal that cannot be read stays ready.
    fn signal(&mut self) {
        while let Wishes::User { signals, .. } = &self.wishes
            && let Ok(Some(_)) = signals.next_signal()
        {
            if std::mem::replace(&mut self.stopped, true) {
                self.experiment.abandon();
            } else {
                self.experiment.stop();
            }
        }
    }

    /// The command that started this run ends it.
    fn stop(&mut self) {
        if let Wishes::Command(tap) = &self.wishes
            && tap.stop.clear()
        {
            self.experiment.stop();
        }
    }

    /// Prints the state of each stream, as ping does; the live view shows it all the time.
    fn status(&self) {
        let Wishes::User { requests, .. } = &self.wishes else {
            return;
        };
        if !requests.take().unwrap_or(false) || self.screen.is_some() {
            return;
        }
        let streams = &self.task.plan.streams;
        for (number, plan) in (0..).zip(streams) {
            let name = match streams.len() {
                1 => String::new(),
                _ => format!("{}: ", plan.name),
            };
            if let Some(statistics) = self.experiment.statistics(number) {
                // Overwrite the terminal's echo of the key.
                eprintln!("\r{name}{}", text::status(statistics));
            }
        }
    }

    /// Reads all that a socket has. When the clock of the kernel's stamps was set meanwhile, what they say may be hours
    /// off: then a packet was sent when the kernel was asked to, and came when it was read.
    pub(super) fn collect_lane(&mut self, number: usize) {
        let mut times = std::mem::take(&mut self.scratch.times);
        let mut errors = std::mem::take(&mut self.scratch.errors);
        let lane = &mut self.lanes.lanes[number];
        let steps = lane.socket.stats().clock_steps;
        // For another command, a round trip starts at the call, so that queues of this host count too.
        let counts_from_driver = matches!(self.wishes, Wishes::User { .. });
        // Transmit times first: the reply to a packet on this host may have arrived already.
        let told = lane.socket.send_times(&mut times);
        let was_set = lane.socket.stats().clock_steps != steps;
        for (id, stamp) in times.drain(..) {
            let whose = lane.whose(id).filter(|_| !was_set && counts_from_driver);
            if let Some((stream, sequence)) = whose {
                self.experiment.sent(stream, sequence, stamp.at);
            }
        }
        errors.extend(lane.socket.errors());
        for error in errors.drain(..) {
            self.network_error(number, &error);
        }
        (self.scratch.times, self.scratch.errors) = (times, errors);
        if let Err(error) = told {
            self.lane_failed(number, &error);
        }
        let Some(mut batch) = self.batch.take() else {
            return;
        };
        loop {
            let socket = &mut self.lanes.lanes[number].socket;
            if let Err(error) = socket.recv(&mut batch) {
                self.lane_failed(number, &error);
                break;
            }
            let was_set = socket.stats().clock_steps != steps;
            for mut packet in batch.iter() {
                if was_set {
                    packet.arrived.at = clock::now();
                }
                self.reply(number, &packet);
            }
            if !batch.is_full() {
                break;
            }
        }
        self.batch = Some(batch);
    }

    /// Reports the error of a socket once for each of its streams. The socket is read again.
    fn lane_failed(&mut self, number: usize, error: &std::io::Error) {
        let trouble = format!("replies cannot be read: {}", plain(error));
        for stream in 0..self.lanes.of_stream.len() {
            if self.lanes.of_stream[stream] as usize == number {
                self.tell(stream as u32, &trouble);
            }
        }
        self.reactor.pause(PAUSE);
    }

    fn reply(&mut self, lane: usize, packet: &TimedPacket<'_>) {
        let lane = &self.lanes.lanes[lane];
        let whose = match lane.version {
            Some(version) => {
                let identifier = lane.socket.identifier();
                self.nonces.of_echo(version, identifier, packet.bytes)
            }
            None => self.nonces.of_reply(packet.bytes, self.started_unix_ns),
        };
        let (stream, sequence, far) = match whose {
            Some(Whose::Stream(stream, sequence, far)) => (stream, sequence, far),
            Some(Whose::Untagged(sequence)) => match lane.untagged.get(&packet.from.ip()) {
                Some(stream) => (*stream, sequence, None),
                None => return self.experiment.note_unknown(),
            },
            None => return self.experiment.note_unknown(),
        };
        let ttl = packet.hop_limit.unwrap_or(0);
        let accepted = self.experiment.received(Reply {
            stream,
            sequence,
            at: packet.arrived.at,
            ttl,
            tos: packet.traffic_class.unwrap_or(0),
            far,
        });
        if let (Wishes::Command(tap), true) = (&self.wishes, accepted.is_ok()) {
            tap.answered.fetch_add(1, Ordering::Relaxed);
        }
        if let (Ok(accepted), true) = (accepted, self.prints_replies()) {
            let plan = &self.task.plan.streams[stream as usize];
            let address = packet.from.ip();
            let from = if address != plan.address {
                address.to_string()
            } else if self.task.numeric || is_address(&plan.host) {
                text::shown(plan)
            } else {
                format!("{} ({address})", plan.host)
            };
            let seen = text::Seen {
                octets: packet.length,
                from: &from,
                ttl,
            };
            let line = text::reply(plan, seen, &accepted);
            self.line(stream, packet.arrived.real_ns, &line);
        }
    }

    /// An ICMP error is printed and counted; the packet may still be answered.
    fn network_error(&mut self, number: usize, error: &NetworkError) {
        let lane = &self.lanes.lanes[number];
        let whose = match lane.version {
            Some(version) => {
                let identifier = lane.socket.identifier();
                self.nonces
                    .of_quoted_echo(version, identifier, error.quote())
            }
            None => self.nonces.of_quoted_probe(error.quote()),
        };
        let to = error.to.map(|to| to.ip());
        let untagged = to.and_then(|to| lane.untagged.get(&to));
        let (stream, sequence) = match (whose, untagged) {
            (Some(Whose::Stream(stream, sequence, _)), _) => (stream, Some(sequence)),
            (Some(Whose::Untagged(sequence)), Some(stream)) => (*stream, Some(sequence)),
            // A UDP socket has one stream. An ICMP error that quotes too little counts for the first stream to that
            // destination.
            _ => match (0..self.lanes.of_stream.len()).find(|&stream| {
                self.lanes.of_stream[stream] as usize == number
                    && (lane.version.is_none() || to == Some(self.task.to[stream].ip()))
            }) {
                Some(stream) => (stream as u32, None),
                None => return,
            },
        };
        // The quoted packet came from the network, where others may have seen our sequence numbers.
        let Some(plan) = self.task.plan.streams.get(stream as usize) else {
            return self.experiment.note_unknown();
        };
        let what = explain(error, plan.address.is_ipv6());
        let Some(from) = error.from.filter(|_| error.source != ErrorSource::Local) else {
            return self.tell(stream, &format!("local error: {what}"));
        };
        self.experiment.note_error(stream);
        let known = sequence.and_then(|sequence| self.experiment.resolve(stream, sequence));
        let name = match plan.protocol {
            Protocol::Icmp => "icmp_seq",
            Protocol::Udp { .. } => "udp_seq",
        };
        let line = match known {
            Some(sequence) => format!("From {from} {name}={sequence} {what}"),
            None => format!("From {from} {what}"),
        };
        if let Some(screen) = &self.screen {
            screen.note(stream, &line);
        }
        self.line(stream, error.at.real_ns, &line);
    }

    fn prints_replies(&self) -> bool {
        self.task.view == Shown::Text
    }

    /// Prints a line about a stream, with the stream's name if its host has several streams.
    fn line(&mut self, stream: u32, real_ns: u64, line: &str) {
        if !self.prints_replies() {
            return;
        }
        let plan = &self.task.plan.streams[stream as usize];
        let date = match self.task.date {
            true => format!(
                "[{}.{:06}] ",
                real_ns / 1_000_000_000,
                real_ns / 1_000 % 1_000_000
            ),
            false => String::new(),
        };
        let name = match plan.name == plan.host {
            true => String::new(),
            false => format!(" ({})", plan.name),
        };
        if !self.paper.line(&format!("{date}{line}{name}")) {
            // The output is closed.
            self.stopped = true;
            self.experiment.abandon();
        }
    }
}
