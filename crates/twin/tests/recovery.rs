//! Paths with known parameters are inferred from the packets of flows that pass them.

use proptest::prelude::*;
use qos::fifo;
use qos::tbf;
use qos::tree::{Spec, TbfSpec};
use twin::demand::Demand;
use twin::line::Line;
use twin::path::{Loss, Path, Refusal};
use twin::tcp::Algorithm;
use twin::{Captured, Figures, Flow, Run, Twin, run};
use wire::flow::Keys;

const MS: u64 = 1_000_000;

/// A known path.
#[derive(Debug, Clone, Copy)]
struct Known {
    rate_bps: u64,
    base_ms: u64,
    buffer: u64,
    flows: u16,
    algorithm: Algorithm,
    seed: u64,
}

fn known() -> impl Strategy<Value = Known> {
    let algorithm = prop_oneof![Just(Algorithm::Reno), Just(Algorithm::Cubic)];
    (
        1_000_u64..10_000,
        10_u64..150,
        60_u64..500,
        1_u16..4,
        algorithm,
        any::<u64>(),
    )
        .prop_map(
            |(rate_kbps, base_ms, buffer_ms, flows, algorithm, seed)| Known {
                rate_bps: rate_kbps * 1000,
                base_ms,
                buffer: (rate_kbps * buffer_ms / 8).max(12_000),
                flows,
                algorithm,
                seed,
            },
        )
}

/// A flow that sends for `seconds` at the rate of the path.
fn bulk(known: &Known, number: u16, seconds: u64) -> Demand {
    Demand {
        keys: keys(number),
        mss: 1448,
        header: 66,
        base: known.base_ms * MS,
        bursts: vec![(
            u64::from(number) * 20 * MS,
            known.rate_bps / 8 * seconds / u64::from(known.flows),
        )],
        windows: vec![(0, 1 << 30)],
        buffer: None,
        ack_every: 2,
        initial: 10,
        algorithm: known.algorithm,
        until: None,
    }
}

fn keys(number: u16) -> Keys {
    let mut keys = Keys::default();
    keys.outer.source_port = 1000 + number;
    keys.outer.protocol = 6;
    keys
}

fn line(known: &Known) -> Line {
    Line {
        rate_bps: known.rate_bps,
        queue: fifo::Limit::Bytes(known.buffer).into(),
        overhead: None,
        loss: 0.0,
        policer: None,
    }
}

/// A path that a shaper of `qos` makes, in front of a fast line: tokens instead of serialisation.
fn shaped(known: &Known) -> Line {
    let fifo: Spec = fifo::Limit::Bytes(known.buffer).into();
    let shaper = TbfSpec {
        options: tbf::Options {
            rate_bps: known.rate_bps,
            burst: 3100,
            peak: None,
        },
        child: Box::new(fifo),
    };
    Line {
        rate_bps: 1_000_000_000,
        queue: shaper.into(),
        ..line(known)
    }
}

fn flows(demands: &[Demand], line: &Line, seed: u64) -> Vec<Flow> {
    let run = run(&Run {
        demands,
        line,
        cross_bps: 0,
        seed,
        until: 600_000 * MS,
    });
    run.expect("a queue").flows
}

/// Bytes of a full packet.
const PACKET: f64 = 1500.0;

/// The bounds of the goal: 5 % of the rate, 2 ms of the base round trip, 20 % of the buffer. A buffer of few packets is known
/// to two of them: one does not fit, and one is on the line.
fn is_found(known: &Known, path: &Path) -> Result<(), TestCaseError> {
    let rate = path.rate_bps.value / known.rate_bps as f64 - 1.0;
    prop_assert!(rate.abs() < 0.05, "rate {rate:+.3}: {path:?}");
    for base in &path.bases {
        let error = base.value / 1e6 - known.base_ms as f64;
        prop_assert!(error.abs() < 2.0, "base {error:+.2} ms: {path:?}");
    }
    if let Some(buffer) = path.buffer {
        let error = buffer.bytes.value / known.buffer as f64 - 1.0;
        let bound = (2.0 * PACKET / known.buffer as f64).max(0.2);
        prop_assert!(error.abs() < bound, "buffer {error:+.2}: {path:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_serial_line_is_found(known in known()) {
        let demands: Vec<Demand> = (0..known.flows).map(|at| bulk(&known, at, 12)).collect();
        let flows = flows(&demands, &line(&known), known.seed);
        let path = Path::infer(&flows.iter().collect::<Vec<_>>());
        is_found(&known, &path.map_err(|error| TestCaseError::fail(error.to_string()))?)?;
    }

    #[test]
    fn a_shaper_is_found(known in known()) {
        let demands: Vec<Demand> = (0..known.flows).map(|at| bulk(&known, at, 12)).collect();
        let flows = flows(&demands, &shaped(&known), known.seed);
        let path = Path::infer(&flows.iter().collect::<Vec<_>>());
        is_found(&known, &path.map_err(|error| TestCaseError::fail(error.to_string()))?)?;
    }
}

const UPLOAD: Known = Known {
    rate_bps: 5_000_000,
    base_ms: 40,
    buffer: 250_000,
    flows: 1,
    algorithm: Algorithm::Cubic,
    seed: 7,
};

fn infer(demands: &[Demand], line: &Line) -> Result<Path, Refusal> {
    let flows = flows(demands, line, 3);
    Path::infer(&flows.iter().collect::<Vec<_>>())
}

#[test]
fn a_twin_is_near_its_capture_and_the_same_seed_gives_the_same_twin() {
    let demands = [bulk(&UPLOAD, 0, 15)];
    let captured: Vec<Captured> = flows(&demands, &line(&UPLOAD), 3)
        .into_iter()
        .map(|flow| Captured {
            flow,
            keys: keys(0),
        })
        .collect();
    let twin = Twin::new(&captured, 11).expect("a twin");
    assert_eq!(twin.path.loss, Loss::DropTail);
    assert!(twin.error.is_small(), "{:?}", twin.error);
    assert_eq!(twin.algorithm, Algorithm::Cubic);
    let again = Twin::new(&captured, 11).expect("a twin");
    assert_eq!(twin.again.flows, again.again.flows);
    // RFC 8290: the queue of fq_codel stays near 5 ms where the FIFO had 400 ms.
    let fair = Line {
        queue: qos::fq_codel::Options::default().into(),
        ..line(&UPLOAD)
    };
    let (_, under) = twin.under(&fair).expect("a queue");
    assert!(
        under.rtt_ms[2] < 100.0 && twin.captured.rtt_ms[2] > 350.0,
        "{under:?}"
    );
}

#[test]
fn an_application_that_writes_little_is_no_congestion() {
    let mut demand = bulk(&UPLOAD, 0, 1);
    demand.bursts = vec![(200 * MS, 20_000); 60];
    let refused = infer(&[demand], &line(&UPLOAD)).expect_err("no queue");
    assert!(
        matches!(refused, Refusal::NotCongested { .. }),
        "{refused:?}"
    );
}

#[test]
fn a_small_window_is_no_congestion() {
    let known = Known {
        rate_bps: 50_000_000,
        ..UPLOAD
    };
    let mut demand = bulk(&known, 0, 1);
    demand.windows = vec![(0, 20_000)];
    let refused = infer(&[demand], &line(&known)).expect_err("no queue");
    assert!(
        matches!(refused, Refusal::NotCongested { .. }),
        "{refused:?}"
    );
}

#[test]
fn losses_by_chance_show_no_bottleneck() {
    let known = Known {
        rate_bps: 100_000_000,
        ..UPLOAD
    };
    let mut demand = bulk(&known, 0, 1);
    demand.bursts = vec![(0, 4_000_000)];
    let line = Line {
        loss: 0.02,
        ..line(&known)
    };
    let refused = infer(&[demand], &line).expect_err("no queue");
    assert!(matches!(refused, Refusal::NoQueue { .. }), "{refused:?}");
}

#[test]
fn a_policer_is_found() {
    let known = Known {
        rate_bps: 100_000_000,
        ..UPLOAD
    };
    let mut demand = bulk(&known, 0, 1);
    demand.bursts = vec![(0, 12_000_000)];
    let line = Line {
        policer: Some((6_000_000, 60_000)),
        ..line(&known)
    };
    let path = infer(&[demand], &line).expect("a policer");
    assert!(matches!(path.loss, Loss::Policer(_)), "{path:?}");
    assert!((path.rate_bps.value / 6e6 - 1.0).abs() < 0.1, "{path:?}");
}

#[test]
fn traffic_of_others_is_found() {
    let demands = [bulk(&UPLOAD, 0, 8)];
    let run = run(&Run {
        demands: &demands,
        line: &line(&UPLOAD),
        cross_bps: 1_500_000,
        seed: 1,
        until: 600_000 * MS,
    });
    let flows = run.expect("a queue").flows;
    let path = Path::infer(&flows.iter().collect::<Vec<_>>()).expect("a path");
    let whole = path.rate_bps.value + path.cross_bps.value;
    assert!((whole / 5e6 - 1.0).abs() < 0.1, "{path:?}");
    assert!(path.cross_bps.value > 1e6, "{path:?}");
}

#[test]
fn pauses_of_the_application_are_kept() {
    let mut demand = bulk(&UPLOAD, 0, 1);
    demand.bursts = vec![
        (0, 1_000_000),
        (3_000 * MS, 1_000_000),
        (2_000 * MS, 1_000_000),
    ];
    let captured: Vec<Captured> = flows(&[demand], &line(&UPLOAD), 3)
        .into_iter()
        .map(|flow| Captured {
            flow,
            keys: keys(0),
        })
        .collect();
    let twin = Twin::new(&captured, 1).expect("a twin");
    let pauses: Vec<u64> = twin.demands[0]
        .bursts
        .iter()
        .map(|burst| burst.0 / MS)
        .collect();
    assert_eq!(pauses, [0, 3000, 2000]);
    let flow: Vec<&Flow> = twin.again.flows.iter().collect();
    let (was, is) = (&twin.captured, Figures::of(&flow));
    assert!(
        (is.seconds / was.seconds - 1.0).abs() < 0.05,
        "{was:?} {is:?}"
    );
}
