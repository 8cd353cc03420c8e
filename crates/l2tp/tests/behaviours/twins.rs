//! An endpoint and a copy of it, made of its values at a random moment, get the same datagrams, commands and time from
//! then on. They must send the same octets and report the same events, over hundreds of seeds.

use core::cell::Cell;

use base::{Datagram, Duration, Instant, Machine, Redacted, Route};
use l2tp::{
    Call, CallDetails, Config, ConfigIds, DataHeader, Direction, Discard, Endpoint, Event,
    Identity, OpenTunnel, OutgoingCalls, Proxy, SessionKey, TunnelKey,
};
use sim::{Link, NodeHandle, Rng, World};
use wire::l2tp::{DigestType, Version};
use wire::pppoe::LineInfo;

use crate::common::values::{self, Values, whole_ms};

const V4: [&str; 3] = ["192.0.2.1:1701", "192.0.2.2:1701", "192.0.2.3:1701"];
const V6: [&str; 3] = [
    "[2001:db8::1]:1701",
    "[2001:db8::2]:1701",
    "[2001:db8::3]:1701",
];

/// The addresses of a run.
fn addresses(seed: u64) -> [&'static str; 3] {
    if seed.is_multiple_of(3) { V6 } else { V4 }
}

/// An endpoint and its copy. Their clock has whole milliseconds, as the values do.
struct Twins {
    first: Endpoint,
    second: Option<Endpoint>,
    /// Calls that both answered alike.
    compared: Cell<u64>,
}

impl Twins {
    fn new(endpoint: Endpoint) -> Self {
        Self {
            first: endpoint,
            second: None,
            compared: Cell::new(0),
        }
    }

    fn both<R: PartialEq + core::fmt::Debug>(&mut self, call: impl Fn(&mut Endpoint) -> R) -> R {
        let result = call(&mut self.first);
        if let Some(second) = &mut self.second {
            assert_eq!(call(second), result, "the copy answers otherwise");
            self.compared.set(self.compared.get() + 1);
        }
        result
    }
}

impl Machine for Twins {
    type Input<'a> = Datagram<'a>;
    type Transmit = Route;
    type Event = Event;
    type Discard = Discard;

    fn handle(&mut self, input: Datagram<'_>, now: Instant) -> Result<(), Discard> {
        self.both(|one| one.handle(input, whole_ms(now)))
    }

    fn handle_timeout(&mut self, now: Instant) {
        let fired = self.both(|one| one.handle_timeouts(whole_ms(now), usize::MAX));
        // Timers that are due at the same time fire in any order.
        if fired > 1 {
            self.second = None;
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Route> {
        let sent = self.both(|one| {
            let mut octets = Vec::new();
            let route = one.poll_transmit(whole_ms(now), &mut octets)?;
            Some((route, octets))
        });
        let (route, octets) = sent?;
        out.extend_from_slice(&octets);
        Some(route)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.both(Endpoint::poll_event)
    }

    fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let all = [Some(&self.first), self.second.as_ref()];
        let due = all.into_iter().flatten().filter_map(Machine::poll_timeout);
        due.min_by_key(|(at, _)| *at)
    }
}

fn config(seed: u64, node: usize) -> Config {
    let name = addresses(seed)[node];
    let mut rng = Rng::stream(seed, &["config", name]);
    let bit = |n: u64| seed >> n & 1 == 1;
    let calls = [OutgoingCalls::Answer, OutgoingCalls::Ask];
    Config {
        host_name: name.into(),
        accept: true,
        secret: bit(1).then(|| Redacted::new(b"shared by all".to_vec())),
        hide: bit(1) && bit(2),
        tie_breaker: bit(3),
        receive_window: [1, 2, 4, 32][rng.below(4) as usize],
        hello_interval: Duration::from_secs(5),
        idle_tunnel: Duration::from_secs([0, 20][rng.below(2) as usize]),
        tick: Duration::from_millis(1),
        // Short, so that places and ids are used again within a run.
        hold: Duration::from_secs([2, 31][rng.below(2) as usize]),
        config_ids: [ConfigIds::Off, ConfigIds::FirstFree][rng.below(2) as usize],
        outgoing_calls: calls[rng.below(2) as usize],
        cookie_len: [0, 4, 8][rng.below(3) as usize],
        digest: [DigestType::HmacMd5, DigestType::HmacSha1][rng.below(2) as usize],
        ..Config::default()
    }
}

/// A call with a value in every field.
pub(crate) fn detailed_call(direction: Direction, sequencing: bool) -> Call {
    let line = LineInfo::parse(b"\x01\x08eth 1/17\x81\x04\x00\x0f\x42\x40\x8d\x04\x00\x00\x00\x08");
    Call {
        direction,
        sequencing,
        details: CallDetails {
            called_number: (*b"0800 1").into(),
            calling_number: (*b"030 12345").into(),
            sub_address: (*b"7").into(),
            remote_end_id: (*b"circuit 4").into(),
            tx_speed_bps: 100_000_000,
            rx_speed_bps: 40_000_000,
            physical_channel: Some(3),
            private_group: (*b"group").into(),
            bearer_type: 1,
            framing_type: 1,
            line,
            speed_updates: true,
            proxy: Some(Box::new(Proxy {
                initial_received_confreq: (*b"\x01\x04\x05\xdc").into(),
                last_sent_confreq: (*b"\x01\x04\x05\xd4").into(),
                last_received_confreq: (*b"\x05\x06abcd").into(),
                authen_challenge: (*b"challenge").into(),
                authen_type: Some(3),
                authen_name: Redacted::new((*b"user").into()),
                authen_id: Some(9),
                authen_response: Redacted::new((*b"password").into()),
            })),
            ..CallDetails::default()
        },
        ..Call::default()
    }
}

struct Run {
    world: World,
    nodes: [NodeHandle<Twins>; 3],
    rng: Rng,
    /// What an end had some time ago: after a crash it continues with that.
    stored: [Option<Values>; 3],
    /// Of the next successor.
    seed: u8,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut world = World::new(seed);
        world.set_default_link(Link::ROUGH);
        let rng = world.rng("commands");
        let mut node = |n: usize| {
            let machine = Endpoint::new(config(seed, n), [n as u8 + 1; 32]);
            let machine = Twins::new(machine);
            let node = world.add(format!("node {n}"), machine, [addresses(seed)[n]]);
            world.on_event(node, |twins, event, now| {
                if let Event::CallRequested { session } = *event {
                    let id = twins.first.session(session).map_or(0, |s| s.id);
                    twins.both(|one| match id % 3 {
                        0 => one.close_session(session, whole_ms(now)),
                        _ => one.answer_call(session),
                    });
                }
            });
            node
        };
        Self {
            nodes: [node(0), node(1), node(2)],
            world,
            rng,
            stored: [None, None, None],
            seed: 10,
        }
    }

    /// An end crashes, and a successor continues with what was stored, which may be old.
    fn crash(&mut self, n: usize) {
        let Some(stored) = self.stored[n].take() else {
            let stored = |twins: &mut Twins, _| Values::of(&mut twins.first);
            self.stored[n] = Some(self.world.with(self.nodes[n], stored));
            return;
        };
        self.seed += 1;
        let wait = Duration::from_millis(self.rng.below(1_000));
        let seed = [self.seed; 32];
        self.world.with(self.nodes[n], |twins, now| {
            let config = twins.first.config().clone();
            twins.second = None;
            twins.first = stored.restore_into(Endpoint::new(config, seed));
            for tunnel in values::tunnels(&twins.first) {
                twins.first.resume(tunnel, wait, whole_ms(now));
            }
        });
    }

    fn both<R: PartialEq + core::fmt::Debug>(
        &mut self,
        n: usize,
        call: impl Fn(&mut Endpoint, Instant) -> R,
    ) -> R {
        self.world.with(self.nodes[n], |twins, now| {
            twins.both(|one| call(one, whole_ms(now)))
        })
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> Option<T> {
        let at = self.rng.below(list.len() as u64) as usize;
        list.get(at).copied()
    }

    fn command(&mut self) {
        let n = self.rng.below(3) as usize;
        let endpoint = &self.world[self.nodes[n]].first;
        let (tunnels, sessions) = (values::tunnels(endpoint), values::sessions(endpoint));
        let (tunnel, session) = (self.pick(&tunnels), self.pick(&sessions));
        match (self.rng.below(100), tunnel, session) {
            (0..15, ..) => self.open_tunnel(n),
            (15..60, Some(tunnel), _) => self.open_session(n, tunnel),
            (60..65, Some(tunnel), _) => {
                self.both(n, |one, now| one.close_tunnel(tunnel, now));
            }
            (65..75, _, Some(session)) => {
                self.both(n, |one, now| one.close_session(session, now));
            }
            (75..80, _, Some(session)) => {
                let wait = Duration::from_secs(2);
                self.both(n, |one, now| one.end_payload_after(session, wait, now));
            }
            (80..90, _, Some(session)) => self.use_session(n, session),
            (90..92, Some(tunnel), _) => {
                self.both(n, |one, _| {
                    (one.send_hello(tunnel), one.request_speeds(tunnel))
                });
            }
            (92..95, ..) => self.crash(n),
            (95, ..) => self.world.cut(self.nodes[n], self.nodes[(n + 1) % 3]),
            _ => self.world.heal(self.nodes[n], self.nodes[(n + 1) % 3]),
        }
    }

    fn use_session(&mut self, n: usize, session: SessionKey) {
        let cause = l2tp::PppCause {
            code: 5,
            protocol: 0xc021,
            direction: 1,
            message: "no more".into(),
        };
        let speed = self.rng.next_u64() >> 34;
        let header = self.both(n, |one, _| one.data_header(session));
        if let Some(header) = header {
            self.carry(n, &header);
        }
        self.both(n, |one, _| {
            let updated = one.update_speed(session, Some(speed), None);
            let linked = one.send_link_info(session, (1, 2), true);
            let caused = one.set_ppp_cause(session, cause.clone());
            (updated, linked, caused)
        });
    }

    /// A frame with that header arrives at the other end, perhaps twice.
    fn carry(&mut self, n: usize, header: &DataHeader) {
        let names = addresses(self.world.seed());
        let to = header.route.peer;
        let Some(peer) = names.iter().position(|name| sim::addr(name) == to) else {
            return;
        };
        let frame = [header.as_bytes(), b"frame"].concat();
        let route = Route::to(sim::addr(names[n]));
        for _ in 0..1 + self.rng.below(2) {
            let _ = self.both(peer, |one, now| one.receive_data(&route, &frame, now));
        }
    }

    fn open_tunnel(&mut self, n: usize) {
        let peer = (n + 1 + self.rng.below(2) as usize) % 3;
        let peer = addresses(self.world.seed())[peer];
        let version = self.pick(&[Version::V2, Version::V3]).expect("two");
        let route = Route {
            peer: sim::addr(peer),
            local: None,
            socket: 0,
        };
        // The peer does not have this secret, so the tunnel is refused or never answered.
        let own = Redacted::new(b"of this tunnel".to_vec());
        let identity = Identity {
            secret: (self.rng.below(5) == 0).then_some(&own),
            host_name: (self.rng.below(3) == 0).then_some("another name"),
            peer_name: [None, None, Some(peer), Some("no such name")][self.rng.below(4) as usize],
        };
        let open = OpenTunnel { route, version };
        self.both(n, |one, now| one.open_tunnel_as(open, identity, now))
            .expect("nothing is full");
    }

    fn open_session(&mut self, n: usize, tunnel: TunnelKey) {
        let direction = [Direction::Incoming, Direction::Outgoing];
        let direction = self.pick(&direction).expect("two");
        let call = detailed_call(direction, self.rng.below(2) == 0);
        // A closing tunnel takes none.
        let _ = self.both(n, |one, now| one.open_session(tunnel, call.clone(), now));
    }
}

/// Calls `copied` for an endpoint now and then.
fn run(seed: u64, commands: u32, mut copied: impl FnMut(&mut Twins)) -> u64 {
    let mut run = Run::new(seed);
    for _ in 0..commands {
        let pause = run.rng.up_to(Duration::from_secs(1));
        run.world.run_for(pause);
        let n = run.rng.below(3) as usize;
        if run.rng.below(4) == 0 {
            run.world.with(run.nodes[n], |twins, _| copied(twins));
        }
        run.command();
    }
    run.world.run_for(Duration::from_secs(60));
    let compared = |node: NodeHandle<Twins>| run.world[node].compared.get();
    run.nodes.map(compared).iter().sum()
}

/// Values of endpoints in the middle of a run, and the configuration of each.
pub(crate) fn samples(seed: u64) -> Vec<(Config, Values)> {
    let mut all = Vec::new();
    run(seed, 60, |twins| {
        let values = Values::of(&mut twins.first);
        all.push((twins.first.config().clone(), values));
    });
    all
}

#[test]
fn a_copy_made_of_values_sends_and_reports_what_its_original_does() {
    let compared = Cell::new(0);
    sim::seeds(300, |seed| {
        let answers = run(seed, 60, |twins| {
            let copy = values::copy(&mut twins.first);
            assert_eq!(values::rows(&copy), values::rows(&twins.first));
            twins.second = values::has_an_order(&twins.first).then_some(copy);
        });
        compared.set(compared.get() + answers);
    });
    let compared = compared.get();
    assert!(compared > 100_000, "{compared} calls were compared");
}
