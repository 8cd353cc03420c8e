//! Tests which packets TBF sends and when, in virtual time.

use crate::world::{World, assert_ceiling, keys};
use base::{Duration, Instant};
use proptest::prelude::*;
use qos::Discipline;
use qos::fifo::{Fifo, Limit};
use qos::tbf::{Options, Peak, Tbf};

fn tbf(options: Options, limit: u64) -> World<Tbf> {
    let child = Box::new(Fifo::new(Limit::Bytes(limit)));
    World::new(Tbf::new(&options, child, None, Instant::ZERO))
}

fn options(rate_bps: u64, burst: u32) -> Options {
    Options {
        rate_bps,
        burst,
        peak: None,
    }
}

#[test]
fn a_full_bucket_goes_at_once_and_the_rest_at_the_rate() {
    let mut world = tbf(options(8_000_000, 3_000), 100_000);
    for _ in 0..10 {
        world.offer(keys(1, 2, 1), 1_000);
    }
    world.run_until(Instant::from_nanos(7_000_000));
    let times: Vec<u64> = world.sent.iter().map(|sent| sent.at.as_nanos()).collect();
    assert_eq!(times[..3], [0, 0, 0]);
    let rest: Vec<u64> = (1..=7).map(|n| n * 1_000_000).collect();
    assert_eq!(times[3..], rest);
}

#[test]
fn the_peak_rate_spaces_what_the_bucket_holds() {
    let peak = Some(Peak {
        rate_bps: 16_000_000,
        mtu: 1_000,
    });
    let options = Options {
        peak,
        ..options(8_000_000, 4_000)
    };
    let mut world = tbf(options, 100_000);
    for _ in 0..20 {
        world.offer(keys(1, 2, 1), 1_000);
    }
    world.run_until(Instant::from_nanos(20_000_000));
    assert_ceiling(world.sent.iter(), 16_000_000, 1_000);
    assert_ceiling(world.sent.iter(), 8_000_000, 4_000);
    assert_eq!(world.sent[1].at, Instant::from_nanos(500_000));
    assert!(
        !world.offer(keys(1, 2, 1), 1_001),
        "longer than the peak's mtu"
    );
    assert_eq!(world.discipline.statistics().dropped, 1);
}

#[test]
fn a_backlogged_queue_gets_its_rate_from_a_kilobit_to_a_hundred_gigabits() {
    for rate_bps in [1_000, 999_983, 2_500_000, 1_000_000_007, 100_000_000_000] {
        let mut world = tbf(options(rate_bps, 3_028), 1 << 40);
        let seconds = 3_000_u64 * 1_514 * 8 / rate_bps;
        let end = Instant::from_nanos(3_000 * 1_514 * 8_000 / (rate_bps / 1_000).max(1) * 1_000);
        for _ in 0..4_000 {
            world.offer(keys(1, 2, 1), 1_514);
        }
        world.run_until(end);
        let sent = world.bytes(Instant::ZERO, end, |_| true);
        let whole = u128::from(rate_bps) * u128::from(end.as_nanos()) / 8_000_000_000;
        assert!(u128::from(sent) * 100 >= whole * 97, "{rate_bps} {seconds}");
        assert!(u128::from(sent) <= whole + 3_028, "{rate_bps}");
        assert_ceiling(world.sent.iter(), rate_bps, 3_028);
    }
}

proptest! {
    #[test]
    fn no_window_passes_rate_and_burst_and_none_is_lost_on_the_way(
        rate_bps in 1_000u64..1_000_000_000,
        burst in 1_514u32..20_000,
        peak in prop::option::of((1_000_000u64..2_000_000_000, 1_514u32..3_000)),
        load in prop::collection::vec((0u64..3_000_000, 40u32..1_514), 1..200),
    ) {
        let peak = peak.map(|(rate_bps, mtu)| Peak { rate_bps, mtu });
        let mut world = tbf(Options { peak, ..options(rate_bps, burst) }, 20_000);
        for (wait, length) in load {
            let next = world.now + Duration::from_nanos(wait);
            world.run_until(next);
            world.offer(keys(1, 2, 1), length);
        }
        world.run_until(world.now + Duration::from_secs(400));
        assert_ceiling(world.sent.iter(), rate_bps, burst);
        if let Some(peak) = peak {
            assert_ceiling(world.sent.iter(), peak.rate_bps, peak.mtu);
        }
        prop_assert_eq!(world.discipline.backlog().packets, 0);
        prop_assert!(world.sent.windows(2).all(|two| two[0].packet.handle < two[1].packet.handle));
    }
}
