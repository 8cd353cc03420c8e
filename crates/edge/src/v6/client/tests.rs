//! The client for a prefix by the sections of RFC 8415, and against our own server on a bad network.

use core::net::IpAddr;

use aaa::Prefix;
use base::{Duration, Instant};
use wire::dhcpv6::{Kind, Lease, Message, Status, Writer, code};

use super::fsm::{Event, State, Step, step};
use super::*;
use crate::v6::{Leases, Server, Settings, Stock, Wanted};

const DUID: &[u8] = &[0, 3, 0, 1, 2, 0, 0, 0, 0, 9];
const START: Instant = Instant::from_nanos(5_000_000_000_000);

fn wish(rapid_commit: bool) -> PrefixWish {
    PrefixWish {
        duid: DUID.into(),
        iaid: 7,
        length: Some(56),
        rapid_commit,
    }
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A client, its time, and the messages that it has sent.
struct Bench {
    client: PrefixClient,
    now: Instant,
}

impl Bench {
    fn new(rapid_commit: bool) -> Self {
        let mut client = PrefixClient::new(wish(rapid_commit), [3; 32]);
        client.start(START);
        Self { client, now: START }
    }

    /// Advances to the next deadline, and returns the messages that are sent there.
    fn next(&mut self) -> Vec<Vec<u8>> {
        self.now = self
            .client
            .poll_timeout()
            .expect("a deadline")
            .max(self.now);
        self.client.handle_timeout(self.now);
        self.sent()
    }

    fn sent(&mut self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        let mut message = Vec::new();
        while self.client.poll_transmit(self.now, &mut message) {
            all.push(core::mem::take(&mut message));
        }
        all
    }

    /// The only message at the next deadline.
    fn one(&mut self) -> Vec<u8> {
        let mut sent = self.next();
        assert_eq!(sent.len(), 1);
        sent.remove(0)
    }

    fn answer(&mut self, answer: &Answer<'_>, to: &[u8]) -> Result<(), Unheeded> {
        self.client.receive(&answer.write(to), self.now)
    }

    /// A client that has a prefix, after Solicit, Advertise, Request and Reply.
    fn bound() -> (Self, Vec<u8>) {
        let mut bench = Self::new(false);
        let solicit = bench.one();
        bench.answer(&Answer::advertise(), &solicit).unwrap();
        let request = bench.one();
        bench.answer(&Answer::reply(), &request).unwrap();
        assert_eq!(bench.client.state(), "bound");
        (bench, request)
    }

    fn event(&mut self) -> Option<PrefixEvent> {
        self.client.poll_event()
    }
}

/// A server's message.
#[derive(Clone)]
struct Answer<'a> {
    kind: Kind,
    server: &'a [u8],
    client: &'a [u8],
    iaid: u32,
    times: [u32; 2],
    lease: Option<Lease>,
    status: Option<Status>,
    preference: Option<u8>,
    is_commit: bool,
    solicit_most_s: Option<u32>,
}

impl Answer<'_> {
    fn reply() -> Self {
        Self {
            kind: Kind::Reply,
            server: b"server",
            client: DUID,
            iaid: 7,
            times: [1_000, 1_600],
            lease: Some(Lease {
                address: "2001:db8:7:100::".parse().unwrap(),
                length: Some(56),
                preferred_s: 2_000,
                valid_s: 3_000,
            }),
            status: None,
            preference: None,
            is_commit: false,
            solicit_most_s: None,
        }
    }

    fn advertise() -> Self {
        Self {
            kind: Kind::Advertise,
            ..Self::reply()
        }
    }

    fn lasting(valid_s: u32, preferred_s: u32) -> Option<Lease> {
        let lease = Self::reply().lease.unwrap();
        Some(Lease {
            preferred_s,
            valid_s,
            ..lease
        })
    }

    fn write(&self, to: &[u8]) -> Vec<u8> {
        let transaction = Message::read(to).unwrap().transaction;
        let mut out = Vec::new();
        let mut message = Writer::new(self.kind, transaction, &mut out);
        message.option(code::SERVER_ID, &[self.server]);
        message.option(code::CLIENT_ID, &[self.client]);
        if let Some(preference) = self.preference {
            message.option(code::PREFERENCE, &[&[preference]]);
        }
        if self.is_commit {
            message.option(code::RAPID_COMMIT, &[]);
        }
        if let Some(most) = self.solicit_most_s {
            message.option(code::SOL_MAX_RT, &[&most.to_be_bytes()]);
        }
        let [t1_s, t2_s] = self.times;
        message.association(code::IA_PD, [self.iaid, t1_s, t2_s], |inner| {
            if let Some(lease) = self.lease {
                lease.write(inner);
            }
            if let Some(status) = self.status {
                inner.status(status, "");
            }
        });
        out
    }
}

fn kind(message: &[u8]) -> Kind {
    Message::read(message).unwrap().kind
}

#[test]
fn the_table_is_total_and_off_is_left_by_a_start_alone() {
    use Event::{
        Chosen, Due, Exhausted, Expired, Granted, NoBinding, Refused, Release, Start, Stop, T1, T2,
        Withdrawn,
    };
    let all = [
        Start, Due, Exhausted, Chosen, Granted, Refused, NoBinding, Withdrawn, T1, T2, Expired,
        Release, Stop,
    ];
    for event in all {
        let expected = match event {
            Start => Step::To(State::Waiting),
            _ => Step::Ignore,
        };
        assert_eq!(step(State::Off, event), expected);
    }
    // "The link is down": from everywhere.
    for state in [
        State::Waiting,
        State::Soliciting,
        State::Requesting,
        State::Bound,
        State::Renewing,
        State::Rebinding,
        State::Releasing,
    ] {
        assert_eq!(step(state, Stop), Step::To(State::Off));
        assert_eq!(step(state, Start), Step::Ignore);
    }
}

#[test]
fn a_prefix_takes_four_messages_and_the_first_is_delayed_up_to_a_second() {
    let mut bench = Bench::new(false);
    let solicit = bench.one();
    assert!(bench.now.since(START) <= seconds(1), "SOL_MAX_DELAY");
    let read = Message::read(&solicit).unwrap();
    assert_eq!(read.kind, Kind::Solicit);
    assert_eq!(read.options.only(code::CLIENT_ID), Ok(Some(DUID)));
    assert_eq!(read.options.only(code::ELAPSED_TIME), Ok(Some(&[0, 0][..])));
    assert!(
        read.options.requests(code::SOL_MAX_RT),
        "section 21.24: MUST"
    );
    assert!(!read.options.has(code::SERVER_ID) && !read.options.has(code::RAPID_COMMIT));
    // The collection lasts for the first retransmission time, which is more than a second.
    bench.answer(&Answer::advertise(), &solicit).unwrap();
    assert_eq!(bench.sent(), Vec::<Vec<u8>>::new());
    let sent_at = bench.now;
    let request = bench.one();
    assert!(bench.now.since(sent_at) > seconds(1));
    let read = Message::read(&request).unwrap();
    assert_eq!(read.kind, Kind::Request);
    assert_eq!(read.options.only(code::SERVER_ID), Ok(Some(&b"server"[..])));
    assert_ne!(
        read.transaction,
        Message::read(&solicit).unwrap().transaction
    );
    bench.answer(&Answer::reply(), &request).unwrap();
    let delegated = match bench.event() {
        Some(PrefixEvent::Leased(delegated)) => delegated,
        other => panic!("{other:?}"),
    };
    assert_eq!(delegated.prefix.to_string(), "2001:db8:7:100::/56");
    assert_eq!(delegated.valid_until, bench.now + seconds(3_000));
    assert_eq!(
        bench.client.poll_timeout(),
        Some(bench.now + seconds(1_000)),
        "T1"
    );
}

#[test]
fn the_highest_preference_is_chosen_and_255_at_once() {
    let mut bench = Bench::new(false);
    let solicit = bench.one();
    for (server, preference) in [(b"one", Some(3)), (b"two", Some(9)), (b"six", None)] {
        let advertise = Answer {
            server,
            preference,
            ..Answer::advertise()
        };
        bench.answer(&advertise, &solicit).unwrap();
    }
    let request = bench.one();
    let server = Message::read(&request)
        .unwrap()
        .options
        .only(code::SERVER_ID);
    assert_eq!(server, Ok(Some(&b"two"[..])));

    let mut bench = Bench::new(false);
    let solicit = bench.one();
    let at_once = Answer {
        preference: Some(255),
        ..Answer::advertise()
    };
    bench.answer(&at_once, &solicit).unwrap();
    assert_eq!(
        bench.sent().iter().map(|one| kind(one)).collect::<Vec<_>>(),
        [Kind::Request]
    );
}

#[test]
fn a_rapid_commit_takes_two_messages_and_a_reply_without_it_is_ignored() {
    let mut bench = Bench::new(true);
    let solicit = bench.one();
    assert!(
        Message::read(&solicit)
            .unwrap()
            .options
            .has(code::RAPID_COMMIT)
    );
    assert_eq!(
        bench.answer(&Answer::reply(), &solicit),
        Err(Unheeded::Kind)
    );
    let commit = Answer {
        is_commit: true,
        ..Answer::reply()
    };
    bench.answer(&commit, &solicit).unwrap();
    assert_eq!(bench.client.state(), "bound");
    let mut plain = Bench::new(false);
    let solicit = plain.one();
    assert_eq!(plain.answer(&commit, &solicit), Err(Unheeded::Kind));
}

#[test]
fn messages_for_others_are_ignored() {
    let mut bench = Bench::new(false);
    let solicit = bench.one();
    let with = |change: fn(&mut Answer<'static>)| {
        let mut answer = Answer::advertise();
        change(&mut answer);
        answer
    };
    for (answer, why) in [
        (with(|one| one.client = b"other"), Unheeded::Client),
        (with(|one| one.server = b""), Unheeded::Server),
        (with(|one| one.iaid = 8), Unheeded::NoPrefix),
        (with(|one| one.lease = None), Unheeded::NoPrefix),
        (with(|one| one.times = [9, 8]), Unheeded::NoPrefix),
        (
            with(|one| one.lease = Answer::lasting(10, 11)),
            Unheeded::NoPrefix,
        ),
        (
            with(|one| one.status = Some(Status::NoPrefixAvail)),
            Unheeded::NoPrefix,
        ),
        (with(|one| one.kind = Kind::Solicit), Unheeded::Kind),
        (with(|one| one.kind = Kind::Reconfigure), Unheeded::Kind),
    ] {
        assert_eq!(bench.answer(&answer, &solicit), Err(why));
    }
    let mut other = solicit.clone();
    other[1] ^= 1;
    let advertise = Answer::advertise().write(&other);
    assert_eq!(
        bench.client.receive(&advertise, bench.now),
        Err(Unheeded::Transaction)
    );
    assert_eq!(
        bench.client.receive(b"", bench.now),
        Err(Unheeded::Malformed)
    );
    // A Reply of a server that was not asked.
    bench.answer(&Answer::advertise(), &solicit).unwrap();
    let request = bench.one();
    let other = Answer {
        server: b"other",
        ..Answer::reply()
    };
    assert_eq!(bench.answer(&other, &request), Err(Unheeded::Server));
}

#[test]
fn a_solicit_repeats_until_the_server_s_most_and_its_elapsed_time_grows() {
    let mut bench = Bench::new(false);
    let solicit = bench.one();
    let busy = Answer {
        lease: None,
        solicit_most_s: Some(60),
        ..Answer::advertise()
    };
    // "MUST process any SOL_MAX_RT option ... even if" the Advertise is ignored. It counts from the next exchange on.
    assert_eq!(bench.answer(&busy, &solicit), Err(Unheeded::NoPrefix));
    let mut elapsed = 0;
    for _ in 0..20 {
        let again = bench.one();
        let options = Message::read(&again).unwrap().options;
        let octets = options.only(code::ELAPSED_TIME).unwrap().unwrap();
        let now = u16::from_be_bytes(octets.try_into().unwrap());
        assert!(now > elapsed || now == u16::MAX);
        elapsed = now;
    }
    // The first Advertise after the collection is acted on at once.
    bench.answer(&Answer::advertise(), &solicit).unwrap();
    assert_eq!(bench.sent().len(), 1);
    assert_eq!(bench.client.state(), "requesting");
}

#[test]
fn a_lease_is_renewed_at_t1_rebound_at_t2_and_lost_at_its_end() {
    let (mut bench, _) = Bench::bound();
    bench.event();
    let bound = bench.now;
    let renew = bench.one();
    assert_eq!(
        (kind(&renew), bench.now),
        (Kind::Renew, bound + seconds(1_000))
    );
    assert!(Message::read(&renew).unwrap().options.has(code::SERVER_ID));
    let mut kinds = vec![];
    while bench.client.state() == "renewing" {
        kinds.extend(bench.next().iter().map(|one| kind(one)));
    }
    assert_eq!(bench.now, bound + seconds(1_600), "T2");
    let rebind = kinds.pop().unwrap();
    assert_eq!(rebind, Kind::Rebind);
    assert!(kinds.iter().all(|kind| *kind == Kind::Renew));
    while bench.client.state() == "rebinding" {
        for message in bench.next() {
            let read = Message::read(&message).unwrap();
            assert!(!read.options.has(code::SERVER_ID) || read.kind != Kind::Rebind);
        }
    }
    assert_eq!(bench.now, bound + seconds(3_000));
    assert!(matches!(bench.event(), Some(PrefixEvent::Lost(_))));
    assert_eq!(bench.client.state(), "soliciting");
    assert_eq!(bench.client.delegated(), None);
}

#[test]
fn a_renewal_extends_the_lease_and_any_server_may_answer_a_rebind() {
    let (mut bench, _) = Bench::bound();
    let renew = bench.one();
    bench.answer(&Answer::reply(), &renew).unwrap();
    assert_eq!(bench.client.state(), "bound");
    let until = bench.client.delegated().unwrap().valid_until;
    assert_eq!(until, bench.now + seconds(3_000));
    bench.one();
    let mut rebind = Vec::new();
    while bench.client.state() == "renewing" {
        rebind = bench.next().pop().unwrap_or_default();
    }
    let other = Answer {
        server: b"another",
        ..Answer::reply()
    };
    bench.answer(&other, &rebind).unwrap();
    let renew = bench.one();
    let server = Message::read(&renew).unwrap().options.only(code::SERVER_ID);
    assert_eq!(server, Ok(Some(&b"another"[..])));
}

#[test]
fn no_binding_asks_again_a_withdrawal_solicits_and_a_refusal_waits() {
    let (mut bench, _) = Bench::bound();
    let renew = bench.one();
    let unknown = Answer {
        lease: None,
        status: Some(Status::NoBinding),
        ..Answer::reply()
    };
    bench.answer(&unknown, &renew).unwrap();
    let request = bench.sent().remove(0);
    assert_eq!(kind(&request), Kind::Request);
    assert_eq!(bench.client.delegated(), None);
    let refused = Answer {
        lease: None,
        status: Some(Status::NoPrefixAvail),
        ..Answer::reply()
    };
    bench.answer(&refused, &request).unwrap();
    assert_eq!(bench.client.state(), "waiting");
    assert_eq!(bench.sent().len(), 0, "not at once: section 14.1");
    let wait = bench.client.poll_timeout().unwrap().since(bench.now);
    assert!(wait >= seconds(15), "{wait:?}");

    let (mut bench, _) = Bench::bound();
    let renew = bench.one();
    let withdrawn = Answer {
        lease: Answer::lasting(0, 0),
        ..Answer::reply()
    };
    bench.answer(&withdrawn, &renew).unwrap();
    assert_eq!(bench.client.state(), "soliciting");
}

/// Section 18.2.10.1: a Reply may withdraw the prefix and have another one.
#[test]
fn a_renewal_that_replaces_the_prefix_takes_the_new_one() {
    let (mut bench, _) = Bench::bound();
    bench.event();
    let renew = bench.one();
    let transaction = Message::read(&renew).unwrap().transaction;
    let new: Ipv6Addr = "2001:db8:7:200::".parse().unwrap();
    let mut reply = Vec::new();
    let mut message = Writer::new(Kind::Reply, transaction, &mut reply);
    message.option(code::SERVER_ID, &[b"server"]);
    message.option(code::CLIENT_ID, &[DUID]);
    message.association(code::IA_PD, [7, 1_000, 1_600], |inner| {
        // A prefix that no network can have is no reason to overlook the others.
        for lease in [
            Answer::lasting(0, 0).unwrap(),
            Lease {
                address: "fe80::".parse().unwrap(),
                ..Answer::lasting(3_000, 2_000).unwrap()
            },
            Lease {
                address: new,
                ..Answer::lasting(3_000, 2_000).unwrap()
            },
        ] {
            lease.write(inner);
        }
    });
    bench.client.receive(&reply, bench.now).unwrap();
    assert_eq!(bench.client.state(), "bound");
    let prefix = bench.client.delegated().unwrap().prefix;
    assert_eq!(prefix.to_string(), "2001:db8:7:200::/56");
    assert!(matches!(bench.event(), Some(PrefixEvent::Lost(_))));
    assert!(matches!(bench.event(), Some(PrefixEvent::Leased(_))));
}

#[test]
fn a_release_is_repeated_four_times_and_any_reply_ends_it() {
    for answers in [true, false] {
        let (mut bench, _) = Bench::bound();
        bench.event();
        bench.client.release(bench.now);
        assert!(matches!(bench.event(), Some(PrefixEvent::Lost(_))));
        let release = bench.sent().remove(0);
        let options = Message::read(&release).unwrap().options;
        assert_eq!(kind(&release), Kind::Release);
        let association = options.only(code::IA_PD).unwrap().unwrap();
        let named = wire::dhcpv6::Association::read(association).unwrap();
        assert_eq!(
            named.leases().next().unwrap().address,
            "2001:db8:7:100::".parse::<core::net::Ipv6Addr>().unwrap()
        );
        if answers {
            let any = Answer {
                lease: None,
                status: Some(Status::NoBinding),
                ..Answer::reply()
            };
            bench.answer(&any, &release).unwrap();
        } else {
            let mut sent = 1;
            while bench.client.state() == "releasing" {
                sent += bench.next().len();
            }
            assert_eq!(sent, 4, "REL_MAX_RC");
        }
        assert_eq!(
            (bench.client.state(), bench.client.poll_timeout()),
            ("off", None)
        );
    }
}

#[test]
fn times_of_zero_are_the_client_s_choice_and_never_at_once() {
    for (times, lease, t1) in [
        ([0, 0], Answer::lasting(3_000, 2_000), 1_000),
        ([0, 0], Answer::lasting(1, 0), 1),
        ([0, 0], Answer::lasting(1_000, 0), 500),
    ] {
        let mut bench = Bench::new(true);
        let solicit = bench.one();
        let reply = Answer {
            is_commit: true,
            times,
            lease,
            ..Answer::reply()
        };
        bench.answer(&reply, &solicit).unwrap();
        assert_eq!(bench.client.poll_timeout(), Some(bench.now + seconds(t1)));
    }
    // A prefix with infinite lifetimes has no deadline.
    let mut bench = Bench::new(true);
    let solicit = bench.one();
    let reply = Answer {
        is_commit: true,
        times: [0, 0],
        lease: Answer::lasting(u32::MAX, u32::MAX),
        ..Answer::reply()
    };
    bench.answer(&reply, &solicit).unwrap();
    assert_eq!(bench.client.poll_timeout(), None);
}

/// A link with one prefix.
#[derive(Default)]
struct Shelf {
    held: Option<Prefix>,
}

fn the_prefix() -> Prefix {
    Prefix::new("2001:db8:42::".parse().unwrap(), 56).unwrap()
}

impl Stock for Shelf {
    fn look(&mut self, wanted: Wanted, _: Option<Prefix>) -> Option<Prefix> {
        (wanted == Wanted::Prefix).then(the_prefix)
    }

    fn take(&mut self, wanted: Wanted, wish: Option<Prefix>) -> Option<Prefix> {
        self.held = self.look(wanted, wish);
        self.held
    }

    fn held(&self, wanted: Wanted) -> Option<Prefix> {
        self.held.filter(|_| wanted == Wanted::Prefix)
    }

    fn give_back(&mut self, _: Wanted) {
        self.held = None;
    }

    fn is_on_link(&self, _: IpAddr) -> bool {
        false
    }

    fn is_leasable(&self, _: IpAddr) -> bool {
        false
    }
}

/// A generator for the network (SplitMix64).
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % n
    }
}

/// A client and our own server, and messages under way: when each arrives, and whether it goes to the server.
struct World {
    rng: Rng,
    client: PrefixClient,
    settings: Settings,
    shelf: Shelf,
    leases: Leases,
    under_way: Vec<(Instant, bool, Vec<u8>)>,
    loss_percent: u64,
    now: Instant,
    /// The latest end of a lease at the server.
    leased_until: Instant,
}

/// The longest delay of a message, in milliseconds.
const DELAY_MS: u64 = 3_000;

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng(seed);
        let rapid = rng.below(2) == 0;
        let mut client = PrefixClient::new(wish(rapid), [seed as u8; 32]);
        client.start(START);
        let settings = Settings {
            valid_s: 2_000,
            preferred_s: 1_000,
            rapid_commit: rng.below(2) == 0,
            ..Settings::default()
        };
        Self {
            loss_percent: rng.below(35),
            rng,
            client,
            settings,
            shelf: Shelf::default(),
            leases: Leases::default(),
            under_way: Vec::new(),
            now: START,
            leased_until: START,
        }
    }

    /// Puts a message on the network: it may be lost, be late, or arrive twice.
    fn post(&mut self, to_server: bool, message: &[u8]) {
        let copies = 1 + u64::from(self.rng.below(10) == 0);
        for _ in 0..copies {
            if self.rng.below(100) >= self.loss_percent {
                let at = self.now + Duration::from_millis(self.rng.below(DELAY_MS));
                self.under_way.push((at, to_server, message.to_vec()));
            }
        }
    }

    fn step(&mut self) {
        let arrival = self.under_way.iter().map(|(at, ..)| *at).min();
        let timer = self.client.poll_timeout();
        let lease = Some(self.leases.deadline()).filter(|at| *at != Instant::FAR_FUTURE);
        let next = [arrival, timer, lease].into_iter().flatten().min();
        self.now = next.expect("something is due").max(self.now);
        while let Some(wanted) = self.leases.expire(self.now) {
            self.shelf.give_back(wanted);
        }
        if let Some(place) = self.under_way.iter().position(|(at, ..)| *at <= self.now) {
            let (_, to_server, message) = self.under_way.swap_remove(place);
            match to_server {
                true => self.serve(&message),
                false => {
                    let _ = self.client.receive(&message, self.now);
                }
            }
        }
        self.client.handle_timeout(self.now);
        let mut message = Vec::new();
        while self.client.poll_transmit(self.now, &mut message) {
            let message = core::mem::take(&mut message);
            self.post(true, &message);
        }
    }

    fn serve(&mut self, message: &[u8]) {
        let server = Server {
            settings: &self.settings,
            dns: &[],
        };
        let mut out = Vec::new();
        let hash = |duid: &[u8]| duid.len() as u64;
        let tables = (&mut self.leases, &mut self.shelf as &mut Shelf);
        let answer = server.answer(message, true, tables, hash, self.now, &mut out);
        let until = self.leases.deadline();
        if until != Instant::FAR_FUTURE {
            self.leased_until = self.leased_until.max(until);
        }
        if answer.is_ok() && !out.is_empty() {
            self.post(false, &out);
        }
    }

    fn check(&self, seed: u64) {
        if let Some(delegated) = self.client.delegated() {
            assert_eq!(delegated.prefix, the_prefix(), "seed {seed}");
            // A lifetime counts from the arrival of its message, so the client may use a prefix longer than the server
            // leased it by as much as the network delays a message.
            let most = self.leased_until + Duration::from_millis(DELAY_MS);
            assert!(
                delegated.valid_until <= most,
                "seed {seed} at {:?}",
                self.now
            );
        }
    }
}

#[test]
fn a_client_gets_and_keeps_its_prefix_on_a_bad_network() {
    for seed in 0..500 {
        let mut world = World::new(seed);
        let end = START + seconds(20_000);
        let mut was_bound = false;
        while world.now < end {
            world.step();
            world.check(seed);
            was_bound |= world.client.delegated().is_some();
        }
        assert!(was_bound, "seed {seed}");
        // On a good network the prefix comes back, and a release frees it at both ends.
        world.loss_percent = 0;
        let end = end + seconds(8_000);
        while world.now < end {
            world.step();
            world.check(seed);
        }
        assert!(
            world.client.delegated().is_some(),
            "seed {seed}: {}",
            world.client.state()
        );
        world.client.release(world.now);
        let mut left = 100;
        while world.client.state() != "off" && left > 0 {
            world.step();
            left -= 1;
        }
        while !world.under_way.is_empty() {
            world.step();
        }
        assert_eq!(world.client.state(), "off", "seed {seed}");
        assert_eq!(world.shelf.held, None, "seed {seed}");
    }
}
