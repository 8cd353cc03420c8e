//! Queues on a whole link in virtual time, compared with figures measured with Linux's queues.
//!
//! The link has 1 Mbit/s upstream with a FIFO of two seconds, and 10 ms each way. Host A floods or
//! uploads, host B pings.

use std::net::Ipv4Addr;

use base::Duration;
use lab::gateway::model::{self, Beside, Setup};
use lab::gateway::rows::{Load, Result as Row, jain};
use lab::gateway::stop::Stop;
use lab::gateway::topology::FARS;
use lab::gateway::treatment::{Both, Link, Treatment};
use qos::classify::{FlowMatch, Key, KeySet, Match, Ports};
use qos::fifo::Limit;
use qos::htb::ClassOptions;
use qos::sfq::{self, Perturb, Sfq};
use qos::tree::{Classifier, DrrClass, DrrSpec, HtbSpec, Spec, TbfSpec};
use qos::{fq_codel, tbf};
use wire::flow::{Flow, Keys};

const SEED: u64 = 7;
const UP_BPS: u64 = 1_000_000;
/// Size of a full packet on the line, in bytes.
const FULL: u32 = 1_514;
/// Number of host buckets in the script.
const BUCKETS: u16 = 64;
/// Share of payload in a full packet.
const PAYLOAD_SHARE: f64 = 1_448.0 / 1_514.0;

fn link() -> Link {
    Link {
        up_bps: UP_BPS,
        // Two seconds of full packets.
        fifo_packets: (2 * UP_BPS / 8 / u64::from(FULL)) as u32,
        ..Link::default()
    }
}

/// 96 % of a rate.
fn below(rate_bps: u64) -> u64 {
    rate_bps / 100 * 96
}

fn shaped(rate_bps: u64, child: Spec) -> Spec {
    Spec::Tbf(TbfSpec {
        options: tbf::Options {
            rate_bps: below(rate_bps),
            burst: 2 * FULL,
            peak: None,
        },
        child: Box::new(child),
    })
}

fn fq_codel(rate_bps: u64) -> fq_codel::Options {
    let mut options = fq_codel::Options::default();
    // RFC 8290 5.2.2: at least the transmission time of a full packet.
    let packet_ns = u64::from(FULL) * 8_000_000_000 / below(rate_bps);
    options.parameters.target = Duration::from_nanos(packet_ns.max(5_000_000));
    options
}

/// The published script: delay-sensitive traffic first, then hosts over buckets, with their flows
/// in each bucket.
fn script_way(rate_bps: u64, hosts: Key) -> Spec {
    let rate = below(rate_bps);
    let class = |minor, parent, rate_bps, priority| ClassOptions {
        minor,
        parent,
        rate_bps,
        ceil_bps: rate,
        burst: 2 * FULL,
        cburst: 2 * FULL,
        priority,
        quantum: None,
    };
    let first = |proto, port| {
        let innermost = FlowMatch {
            proto: Some(proto),
            proto_dst: Some(Ports::one(port)),
            ..FlowMatch::default()
        };
        let rule = Match {
            innermost,
            ..Match::default()
        };
        (rule, 0x10)
    };
    let by_host = Spec::Drr(DrrSpec {
        classes: (1..=BUCKETS)
            .map(|minor| DrrClass {
                minor,
                quantum: FULL,
                child: Spec::FqCodel(fq_codel(rate_bps)),
            })
            .collect(),
        classifier: Classifier::Hash {
            keys: KeySet::of(&[hosts]),
            divisor: BUCKETS.into(),
            seed: 3,
            baseclass: 1,
        },
    });
    Spec::Htb(HtbSpec {
        mtu: FULL,
        classes: vec![
            class(1, None, rate, 0),
            class(0x10, Some(1), rate / 5, 0),
            class(0x20, Some(1), rate / 5 * 4, 1),
        ],
        leaves: vec![(0x10, Spec::FqCodel(fq_codel(rate_bps))), (0x20, by_host)],
        // The uploads here use SSH's port, so the priority rules are for DNS and SIP.
        classifier: Some(Classifier::Rules(vec![first(17, 53), first(17, 5_060)])),
        default: Some(0x20),
        direct_limit: 10,
    })
}

fn script(link: &Link) -> Treatment {
    policy(Both {
        up: script_way(link.up_bps, Key::Src),
        down: script_way(link.down_bps, Key::Dst),
        ..Treatment::None.both(link)
    })
}

fn policy(both: Both) -> Treatment {
    Treatment::Policy {
        name: "test".to_owned(),
        both: Box::new(both),
    }
}

/// Upstream through `queue` at 96 % of the link; downstream unchanged.
fn up_through(link: &Link, queue: Spec) -> Treatment {
    policy(Both {
        up: shaped(link.up_bps, queue),
        ..Treatment::None.both(link)
    })
}

fn setup(link: &Link, treatment: &Treatment, load: Load, bulk: usize, seconds: u64) -> Setup {
    Setup {
        seed: SEED,
        router: treatment.both(link),
        modem: link.modem(),
        delay: link.delay(),
        ecn: false,
        load,
        bulk,
        seconds,
        stop: Stop::default(),
    }
}

/// B's pings to one host.
fn pings(setup: Setup, beside: &Beside, to: Ipv4Addr) -> Row {
    let mut streams = model::pings(&setup, beside, &[(to, 0)]).expect("it fits together");
    Row {
        pings: streams.pop().expect("a stream"),
        ..Row::default()
    }
}

/// 8 Mbit/s of UDP to another far host than the one that is pinged.
fn flood() -> Beside {
    Beside {
        floods: vec![(FARS[1], 8_000_000)],
        ..Beside::default()
    }
}

fn at(row: &Row, share: f64) -> f64 {
    row.ping_percentile_ms(share).expect("replies")
}

#[test]
fn behind_the_script_a_flood_of_8_mbit_costs_the_other_host_no_ping_and_leaves_it_within_80_ms() {
    let link = link();
    for treatment in [script(&link), Treatment::Fair] {
        let setup = setup(&link, &treatment, Load::None, 0, 30);
        let row = pings(setup, &flood(), FARS[0]);
        assert_eq!(row.pings.len(), 300);
        assert_eq!(row.ping_loss_percent(), 0.0, "{treatment:?}");
        assert!(at(&row, 0.99) <= 80.0, "{} ms", at(&row, 0.99));
    }
}

#[test]
fn a_rate_alone_with_a_fifo_of_a_hundred_loses_half_of_the_pings_beside_the_flood() {
    let link = link();
    let treatment = up_through(&link, Spec::Fifo(Limit::Packets(100)));
    let setup = setup(&link, &treatment, Load::None, 0, 30);
    let row = pings(setup, &flood(), FARS[0]);
    assert!(row.ping_loss_percent() >= 50.0, "{row:?}");
}

#[test]
fn three_uploads_use_the_link_behind_the_script_and_a_ping_waits_for_a_packet_and_a_half() {
    let link = link();
    for treatment in [script(&link), Treatment::Fair] {
        let row = pings(
            setup(&link, &treatment, Load::Bulk, 3, 30),
            &Beside::default(),
            FARS[0],
        );
        assert!(at(&row, 0.5) <= 35.0, "{} ms", at(&row, 0.5));
        assert_eq!(row.ping_loss_percent(), 0.0);
        // Two connections of A and one of B.
        let (_, goodput_bps) =
            model::share(&setup(&link, &treatment, Load::Bulk, 2, 30)).expect("it fits together");
        assert!(goodput_bps >= 0.7 * UP_BPS as f64, "{goodput_bps}");
        assert!(goodput_bps <= below(UP_BPS) as f64 * PAYLOAD_SHARE * 1.01);
    }
}

#[test]
fn three_uploads_without_a_policy_fill_the_fifo_of_two_seconds() {
    let link = link();
    let setup = setup(&link, &Treatment::None, Load::Bulk, 3, 60);
    let row = pings(setup, &Beside::default(), FARS[0]);
    assert!(at(&row, 0.5) >= 1_500.0, "{} ms", at(&row, 0.5));
    assert!(at(&row, 1.0) <= 2_200.0, "{} ms", at(&row, 1.0));
}

#[test]
fn nine_uploads_share_with_one_by_host_behind_the_script_and_by_flow_behind_fq_codel() {
    let link = Link {
        up_bps: 10_000_000,
        ..Link::default()
    };
    let index = |treatment: &Treatment| {
        let (share, _) =
            model::share(&setup(&link, treatment, Load::Bulk, 9, 30)).expect("it fits together");
        jain(&[share, 1.0 - share])
    };
    for treatment in [script(&link), Treatment::Fair] {
        let index = index(&treatment);
        assert!(index >= 0.99, "{treatment:?}: {index}");
    }
    let index = index(&Treatment::FqCodel);
    assert!(index <= 0.70, "{index}");
}

#[test]
fn a_flood_of_eight_times_the_link_comes_through_at_the_policys_rate() {
    let link = link();
    for treatment in [script(&link), Treatment::Fair] {
        let (_, goodput_bps) =
            model::share(&setup(&link, &treatment, Load::Flood, 0, 30)).expect("it fits together");
        // 1,442 bytes on the line carry 1,400 bytes of UDP payload; TCP carries a little more.
        let most = below(UP_BPS) as f64 * 1_400.0 / 1_442.0;
        assert!(goodput_bps >= 0.97 * most, "{goodput_bps} of {most}");
        assert!(goodput_bps <= 1.01 * most, "{goodput_bps} of {most}");
    }
}

const PERIOD: Duration = Duration::from_secs(7);
/// Changes of the hash, in seconds after the first ping; the flood starts five seconds earlier.
const CHANGES: [f64; 3] = [2.0, 9.0, 16.0];

/// An SFQ in which pings and flood share a bucket only between the first and the second change.
fn colliding(perturb: Perturb) -> sfq::Options {
    let keys = |to: Ipv4Addr| Keys {
        outer: Flow {
            destination: to.to_ipv6_mapped().octets(),
            ..Flow::default()
        },
        ..Keys::default()
    };
    let meet = |options: &sfq::Options, changes| {
        let hash = Sfq::hash(options, changes);
        hash.bucket(&keys(FARS[0])) == hash.bucket(&keys(FARS[1]))
    };
    let mut options = (0..).map(|seed| sfq::Options {
        keys: KeySet::of(&[Key::Dst]),
        period: PERIOD,
        perturb,
        seed,
        ..sfq::Options::default()
    });
    let wanted = [false, true, false, false];
    let found = options.find(|options| [0, 1, 2, 3].map(|n| meet(options, n)) == wanted);
    let found = found.expect("one in about a thousand");
    // The seed of each queue derives from the tree's seed.
    sfq::Options {
        seed: found.seed ^ SEED,
        ..found
    }
}

fn beside_the_flood(options: sfq::Options) -> Row {
    let link = link();
    let treatment = up_through(&link, Spec::Sfq(options));
    let beside = Beside {
        floods: vec![(FARS[1], 2_000_000)],
        ..Beside::default()
    };
    pings(
        setup(&link, &treatment, Load::None, 0, 20),
        &beside,
        FARS[0],
    )
}

#[test]
fn where_buckets_are_shared_pings_spike_from_one_change_of_the_hash_to_the_next() {
    for perturb in [Perturb::Rehash, Perturb::Stay] {
        let row = beside_the_flood(colliding(perturb));
        let slow = row
            .pings
            .iter()
            .filter(|(_, trip)| trip.is_none_or(|ms| ms > 60.0));
        let (from, to) = slow.fold((f64::MAX, 0.0_f64), |(from, to), (sent, _)| {
            (from.min(*sent), to.max(*sent))
        });
        // The first slow ping is the first one sent after a change, except for pings in flight to
        // the queue.
        assert!(
            (CHANGES[0] - 0.01..=CHANGES[0] + 0.11).contains(&from),
            "{from} s"
        );
        // The last slow ping is sent before the next change, or waits behind packets that arrived
        // before it.
        let after = if perturb == Perturb::Stay { 2.0 } else { 0.01 };
        assert!(
            (CHANGES[1] - 0.2..CHANGES[1] + after).contains(&to),
            "{to} s"
        );
        assert!(at(&row, 1.0) >= 1_000.0, "{perturb:?}: {}", at(&row, 1.0));
    }
}

#[test]
fn without_changes_of_the_hash_and_with_ours_no_ping_takes_more_than_60_ms() {
    let apart = colliding(Perturb::Apart);
    let never = sfq::Options {
        period: Duration::ZERO,
        ..colliding(Perturb::Rehash)
    };
    for options in [apart, never] {
        let row = beside_the_flood(options);
        assert_eq!(row.pings.len(), 200);
        assert_eq!(row.ping_loss_percent(), 0.0, "{options:?}");
        assert!(at(&row, 1.0) <= 60.0, "{options:?}: {}", at(&row, 1.0));
    }
}
