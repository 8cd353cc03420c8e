//! An edge with a NAT on each of several paths, whose turns come in any order, and what has to hold whatever the order is.

use core::net::Ipv4Addr;
use std::collections::{HashMap, HashSet, VecDeque};

use base::{Duration, Instant};
use edge::{Config, Discard, End as Ended, Handover};
use l2tp::Call;
use nat::{Block, Event, Forward, ForwardError, ForwardRequest};

use super::wire::{End, ICMP, Seen, inner, is_error, is_piece, packet, seen};
use crate::cores::{Core, Dice};
use crate::packets::FAR;
use crate::stage::{Datagrams, LAC, Packets, Stage, from_tun, lns_config, pools, route};

/// An inside endpoint of one session: subscriber, number of its session, protocol, port.
pub(super) type Socket = (usize, u32, u8, u16);

/// The world.
pub(super) struct World {
    pub(super) stage: Stage,
    others: Vec<Core>,
    inboxes: Vec<VecDeque<Handover>>,
    /// Batches that wait for a path; a further one is refused.
    pub(super) inbox_max: usize,
    inside: Packets,
    outside: Datagrams,
    pub(super) dice: Dice,
    /// The number of each subscriber's session.
    pub(super) sessions: Vec<u32>,
    /// Packets on their way, by number.
    up: HashMap<u32, Socket>,
    down: HashMap<u32, (Socket, Ipv4Addr)>,
    /// The same of subscribers that have ended: they may be dropped.
    stale: HashMap<u32, (Socket, Ipv4Addr)>,
    /// The external endpoint of each socket, and the reverse. No port is used again within a test.
    pub(super) external: HashMap<Socket, End>,
    owners: HashMap<(End, u8), Socket>,
    /// The last number that arrived of each flow.
    last: HashMap<(bool, Socket), u32>,
    /// Whether packets of a flow arrive on different paths, so that they have no order.
    pub(super) anywhere: bool,
    /// Blocks that subscribers have by the events.
    pub(super) blocks: HashSet<Block>,
    /// Fragments and errors that left, in the order of their arrival.
    pub(super) out_pieces: Vec<Vec<u8>>,
    pub(super) in_pieces: Vec<Vec<u8>>,
    pub(super) errors: Vec<Vec<u8>>,
    pub(super) crossed: u32,
    number: u32,
}

impl World {
    pub(super) fn new(paths: u16, subscribers: usize, nat: nat::Config, seed: u64) -> Self {
        let mut world = Self::unsettled(paths, subscribers, nat, seed);
        world.settle();
        world
    }

    /// The same before other paths have learned of the subscribers.
    pub(super) fn unsettled(paths: u16, subscribers: usize, nat: nat::Config, seed: u64) -> Self {
        let config = Config {
            paths,
            by_session: !seed.is_multiple_of(3),
            queue_packets_max: 1 << 16,
            ..lns_config()
        };
        let mut stage = Stage::with_pools(config, pools("10.0.0.1", "10.0.0.60"));
        stage
            .lns
            .set_nat(nat, vec!["10.0.0.0/24".parse().unwrap()], |_, _| ())
            .unwrap();
        let others = (1..paths).map(|number| Core {
            path: stage.lns.replica(number.into()),
            changes: VecDeque::new(),
            applied: 0,
            unreported: 0,
        });
        let others = others.collect();
        let mut world = Self {
            stage,
            others,
            inboxes: (0..paths).map(|_| VecDeque::new()).collect(),
            inbox_max: usize::MAX,
            inside: Packets::default(),
            outside: Datagrams::default(),
            dice: Dice(seed),
            sessions: Vec::new(),
            up: HashMap::new(),
            down: HashMap::new(),
            stale: HashMap::new(),
            external: HashMap::new(),
            owners: HashMap::new(),
            last: HashMap::new(),
            anywhere: false,
            blocks: HashSet::new(),
            out_pieces: Vec::new(),
            in_pieces: Vec::new(),
            errors: Vec::new(),
            crossed: 0,
            number: 0,
        };
        for n in 0..subscribers {
            // Some number their frames.
            let sequencing = n % 5 == 4;
            let call = Call {
                sequencing,
                ..Call::default()
            };
            world.stage.dial_call("alice", "sesame", call);
            world.sessions.push(n as u32);
        }
        assert_eq!(world.stage.up.len(), subscribers);
        world
    }

    pub(super) fn paths(&self) -> usize {
        self.others.len() + 1
    }

    pub(super) fn address(&self, n: usize) -> Ipv4Addr {
        let view = self.stage.lns.subscriber(self.stage.up[n]).unwrap();
        view.address.unwrap()
    }

    fn first_turn(&mut self) {
        let now = self.stage.now;
        let applied = self.others.iter().map(|core| core.applied).min();
        let edge = &mut self.stage.lns;
        while let Some(batch) = self.inboxes[0].pop_front() {
            edge.take_handover(&batch, now, &mut self.outside, &mut self.inside);
        }
        if let Some(applied) = applied {
            edge.applied(applied, now);
        }
        if edge.poll_timeout().is_some_and(|(at, _)| at <= now) {
            edge.handle_timeout(now);
        }
        while edge.drain(now, &mut self.outside, &mut self.inside) {}
        while let Some(error) = edge.poll_inside() {
            self.inside.0.push(error.into());
        }
        let mut batches = Vec::new();
        edge.poll_handovers(&mut batches);
        for (to, batch) in batches {
            match self.inboxes[to].len() < self.inbox_max {
                true => self.inboxes[to].push_back(batch),
                false => edge.refuse_handover(to, &batch),
            }
        }
        while let Some(change) = edge.poll_change() {
            for core in &mut self.others {
                core.changes.push_back(change.clone());
            }
        }
        while let Some(event) = self.stage.lns.poll_nat_event() {
            self.log(event);
        }
    }

    /// A turn of another path's owner. It may see only some of the changes.
    fn turn_until(&mut self, at: usize, seen: usize) {
        let now = self.stage.now;
        let core = &mut self.others[at];
        while let Some(batch) = self.inboxes[at + 1].pop_front() {
            core.path
                .take_handover(&batch, now, &mut self.outside, &mut self.inside);
        }
        for change in core.changes.drain(..seen) {
            core.path.apply(change);
            core.unreported += 1;
        }
        let (outside, inside) = (&mut self.outside, &mut self.inside);
        core.path.retry_handovers(now, outside, inside);
        if core.path.poll_timeout().is_some_and(|(at, _)| at <= now) {
            core.path.handle_timeout(now);
        }
        while core.path.drain(now, outside, inside) {}
        while let Some(error) = core.path.poll_inside() {
            inside.0.push(error.into());
        }
        let mut batches = Vec::new();
        core.path.poll_handovers(&mut batches);
        for (to, batch) in batches {
            match self.inboxes[to].len() < self.inbox_max {
                true => self.inboxes[to].push_back(batch),
                false => core.path.refuse_handover(to, &batch),
            }
        }
        if !core.path.owes() {
            core.applied += core::mem::take(&mut core.unreported);
        }
        while let Some(event) = self.others[at].path.poll_nat_event() {
            self.log(event);
        }
    }

    /// One core has a turn.
    pub(super) fn turn(&mut self, at: usize) {
        match at.checked_sub(1) {
            None => self.first_turn(),
            Some(at) => self.turn_until(at, self.others[at].changes.len()),
        }
        self.note();
    }

    /// Every core has a turn or none, in any order.
    pub(super) fn turns(&mut self) {
        let all = self.paths();
        for _ in 0..all {
            match self.dice.below(all + 1) {
                0 => self.first_turn(),
                one if one < all => {
                    let changes = self.others[one - 1].changes.len();
                    let seen = self.dice.below(changes + 1).max(changes / 2);
                    self.turn_until(one - 1, seen);
                }
                _ => {}
            }
        }
        self.note();
    }

    /// Turns until nothing is on its way any more.
    pub(super) fn settle(&mut self) {
        for _ in 0..12 {
            self.first_turn();
            for at in 0..self.others.len() {
                self.turn_until(at, self.others[at].changes.len());
            }
            self.note();
        }
    }

    /// A block has one subscriber at a time: it is freed before another one gets it.
    fn log(&mut self, event: Event) {
        match event {
            Event::BlockAllocated(block, _) => {
                let has_port =
                    |one: &&Block| (one.external, one.first) == (block.external, block.first);
                assert!(!self.blocks.iter().any(|one| has_port(&one)), "{block:?}");
                self.blocks.insert(block);
            }
            Event::BlockFreed(block, _) => assert!(self.blocks.remove(&block), "{block:?}"),
            Event::ForwardAdded(..)
            | Event::ForwardRemoved(..)
            | Event::PoolUsedUp { .. }
            | Event::SubscriberLimit { .. } => {}
        }
    }

    /// Checks what has left. A packet to an external address comes back from the inside.
    fn note(&mut self) {
        for datagram in core::mem::take(&mut self.outside.sent) {
            let packet = inner(&datagram);
            match (is_piece(&packet), is_error(&packet)) {
                (true, _) => self.in_pieces.push(packet),
                (_, true) => self.errors.push(packet),
                _ => self.arrived_down(seen(&packet)),
            }
        }
        for packet in core::mem::take(&mut self.inside.0) {
            let to = super::wire::address(&packet, 16);
            if self.stage.lns.nat().unwrap().owns(to) {
                self.crossed += 1;
                let at = self.dice.below(self.paths());
                self.pass_from_inside(&packet, at);
                if !is_piece(&packet) && !is_error(&packet) {
                    self.arrived_up(seen(&packet));
                }
                continue;
            }
            match (is_piece(&packet), is_error(&packet)) {
                (true, _) => self.out_pieces.push(packet),
                (_, true) => self.errors.push(packet),
                _ => self.arrived_up(seen(&packet)),
            }
        }
    }

    fn arrived_up(&mut self, seen: Seen) {
        let socket = self.up.remove(&seen.number).expect("it was sent once");
        assert_eq!(socket.2, seen.protocol);
        // RFC 4787 REQ-1: whatever the destination is.
        let external = *self.external.entry(socket).or_insert(seen.from);
        assert_eq!(external, seen.from, "{socket:?}");
        let owner = *self
            .owners
            .entry((external, seen.protocol))
            .or_insert(socket);
        assert_eq!(owner, socket, "two have {external:?}");
        self.in_order(false, socket, seen.number);
    }

    fn arrived_down(&mut self, seen: Seen) {
        let expected = self.down.remove(&seen.number);
        let expected = expected.or_else(|| self.stale.remove(&seen.number));
        let (socket, inside) = expected.expect("it was sent once");
        assert_eq!((seen.protocol, seen.to), (socket.2, (inside, socket.3)));
        self.in_order(true, socket, seen.number);
    }

    fn in_order(&mut self, down: bool, socket: Socket, number: u32) {
        let last = self.last.insert((down, socket), number);
        let is_later = last.is_none_or(|last| last < number);
        assert!(
            is_later || self.anywhere,
            "{socket:?}: {number} after {last:?}"
        );
    }

    /// The path on which a flow arrives.
    fn arrival(&mut self, down: bool, port: u16) -> usize {
        match self.anywhere {
            true => self.dice.below(self.paths()),
            false => (usize::from(port) * 7 + usize::from(down) * 3) % self.paths(),
        }
    }

    pub(super) fn next_number(&mut self) -> u32 {
        self.number += 1;
        self.number
    }

    /// The socket of a subscriber's present session.
    pub(super) fn socket(&self, n: usize, protocol: u8, port: u16) -> Socket {
        (n, self.sessions[n], protocol, port)
    }

    /// A packet of a subscriber to a destination.
    pub(super) fn send_to(&mut self, socket: Socket, to: End) {
        let (n, _, protocol, port) = socket;
        let number = self.next_number();
        let from = (self.address(n), port);
        self.up.insert(number, socket);
        let packet = packet(protocol, from, to, false, number);
        let at = self.arrival(false, port);
        self.pass_from_subscriber(&packet, at);
    }

    pub(super) fn send(&mut self, socket: Socket) {
        self.send_to(socket, (FAR, 53));
    }

    /// A packet from far to an external end, which the socket has to get.
    pub(super) fn reply_to(&mut self, socket: Socket, external: End) {
        let (n, _, protocol, port) = socket;
        let number = self.next_number();
        self.down.insert(number, (socket, self.address(n)));
        let from = if protocol == ICMP { external.1 } else { 53 };
        let packet = packet(protocol, (FAR, from), external, true, number);
        let at = self.arrival(true, port);
        self.pass_from_inside(&packet, at);
    }

    /// The same to the external end of the socket, if it has one.
    pub(super) fn reply(&mut self, socket: Socket) {
        if let Some(&external) = self.external.get(&socket) {
            self.reply_to(socket, external);
        }
    }

    /// A packet of a socket to the external end of another one.
    pub(super) fn cross(&mut self, from: Socket, to: Socket) {
        let end = self.external[&to];
        let number = self.number + 1;
        self.down.insert(number, (to, self.address(to.0)));
        self.send_to(from, end);
    }

    /// A packet from far to a forwarded port, on a path.
    pub(super) fn forwarded_packet(&mut self, socket: Socket, end: End, at: usize) {
        let number = self.next_number();
        self.down.insert(number, (socket, self.address(socket.0)));
        let packet = packet(socket.2, (FAR, 53), end, true, number);
        self.pass_from_inside(&packet, at);
    }

    /// A subscriber's packet that arrives on a path.
    pub(super) fn pass_from_subscriber(&mut self, packet: &[u8], at: usize) {
        let now = self.stage.now;
        for datagram in self.stage.datagrams_up(packet) {
            let from = route(LAC);
            let inside = &mut self.inside;
            let taken = at
                .checked_sub(1)
                .map(|at| self.others[at].path.receive(&from, &datagram, now, inside));
            if taken.is_none_or(|taken| taken == edge::Taken::Left) {
                self.stage.lns.receive(from, &datagram, now, inside);
            }
        }
    }

    /// A packet from the inside that arrives on a path.
    pub(super) fn pass_from_inside(&mut self, packet: &[u8], at: usize) {
        let now = self.stage.now;
        let mut octets = from_tun(packet);
        let outside = &mut self.outside;
        let taken = at
            .checked_sub(1)
            .map(|at| self.others[at].path.forward(&mut octets, now, outside));
        if taken.is_none_or(|taken| taken == edge::Taken::Left) {
            self.stage.lns.forward(&mut octets, now, outside);
        }
    }

    /// Forwards a port; answers come while all have turns.
    pub(super) fn forward(&mut self, wish: &ForwardRequest) -> Result<Forward, ForwardError> {
        let now = self.stage.now;
        let asked = self.stage.lns.forward_port(wish, now).unwrap();
        loop {
            if let Some(answer) = asked.answer() {
                return answer;
            }
            self.turns();
        }
    }

    pub(super) fn unforward(&mut self, protocol: nat::Protocol, external: End) -> Option<Forward> {
        let now = self.stage.now;
        let asked = self.stage.lns.unforward_port(protocol, external, now);
        let asked = asked.unwrap();
        self.settle();
        asked.answer().unwrap()
    }

    pub(super) fn totals(&mut self) -> edge::NatTotals {
        let asked = self.stage.lns.nat_totals(self.stage.now).unwrap();
        self.settle();
        asked.answer().unwrap()
    }

    /// Ends a subscriber; another one dials in, which may get its place and its address.
    pub(super) fn redial(&mut self, n: usize) {
        self.end(n);
        self.stage.dial("alice", "sesame");
        self.stage.up[n] = self.stage.up.pop().unwrap();
        self.sessions[n] += 1_000;
    }

    pub(super) fn end(&mut self, n: usize) {
        let (key, now) = (self.stage.up[n], self.stage.now);
        let ended = self
            .stage
            .lns
            .drop_subscriber(key, Ended::Administrator, now);
        assert!(ended);
        self.stage.settle();
        // Its packets on their way may be dropped.
        let stale = self.down.extract_if(|_, (socket, _)| socket.0 == n);
        self.stale.extend(stale);
    }

    pub(super) fn pass(&mut self, span: Duration) {
        self.stage.now += span;
    }

    pub(super) fn now(&self) -> Instant {
        self.stage.now
    }

    /// Packets that were sent and never seen again.
    pub(super) fn lost(&self) -> usize {
        self.up.len() + self.down.len()
    }

    pub(super) fn dropped(&self, why: Discard) -> u64 {
        self.stage.lns.discarded(why)
    }
}
