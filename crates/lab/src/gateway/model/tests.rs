use super::{Setup, probe, share};
use crate::gateway::rows::{BULK_CONNECTIONS, Load, Result};
use crate::gateway::stop::Stop;
use crate::gateway::treatment::{Link, Treatment};

/// The default link under a treatment.
fn setup(treatment: &Treatment, load: Load, seed: u64) -> Setup {
    let link = Link::default();
    Setup {
        seed,
        router: treatment.both(&link),
        modem: link.modem(),
        delay: link.delay(),
        ecn: false,
        load,
        bulk: BULK_CONNECTIONS,
        seconds: 20,
        stop: Stop::default(),
    }
}

fn unshaped(load: Load) -> Setup {
    setup(&Treatment::None, load, 1)
}

fn probed(setup: &Setup) -> Result {
    probe(setup).expect("disciplines that fit together")
}

#[test]
fn an_idle_line_loses_nothing_and_waits_for_nobody() {
    let result = probed(&unshaped(Load::None));
    assert_eq!(result.loss_percent, 0.0);
    assert_eq!((result.ping_loss_percent(), result.page_failures), (0.0, 0));
    let p50 = result.ping_percentile_ms(0.5).expect("replies");
    // Two ways of 10 ms; a page in between may be waited for.
    assert!((20.0..25.0).contains(&p50), "{p50}");
    assert!(result.page_mean_ms().expect("pages") < 500.0);
}

#[test]
fn three_bulk_connections_fill_the_fifo_and_everybody_waits() {
    let result = probed(&unshaped(Load::Bulk));
    let p50 = result.ping_percentile_ms(0.5).expect("replies");
    // A hundred packets of 1,514 octets at 2.5 Mbit/s are 484 ms.
    assert!((200.0..520.0).contains(&p50), "{p50}");
    let idle = probed(&unshaped(Load::None)).page_mean_ms().expect("pages");
    assert!(
        result
            .page_mean_ms()
            .is_none_or(|loaded| loaded > 2.0 * idle)
    );
}

#[test]
fn a_flood_of_three_times_the_line_takes_nearly_every_place_in_the_fifo() {
    let result = probed(&unshaped(Load::Flood));
    // 71 % of all packets are lost. A thin stream loses more, since an evenly spaced flood takes
    // most free places in the queue.
    assert!(
        (65.0..90.0).contains(&result.loss_percent),
        "{}",
        result.loss_percent
    );
}

#[test]
fn bulk_data_use_the_line_to_the_full() {
    let (share, goodput) = share(&unshaped(Load::Bulk)).expect("a share");
    assert!(goodput > 2_500_000.0 * 0.9 * 1_448.0 / 1_514.0, "{goodput}");
    assert!((0.05..0.6).contains(&share), "{share}");
}

#[test]
fn the_same_seed_gives_the_same_result_to_the_last_bit() {
    let once = probed(&unshaped(Load::Bulk));
    assert_eq!(once, probed(&unshaped(Load::Bulk)));
}

#[test]
fn with_the_policy_a_host_notices_little_of_its_neighbours_load() {
    for seed in 1..=4 {
        let shaped = |load| setup(&Treatment::Fair, load, seed);
        let idle = probed(&shaped(Load::None));
        let base = idle.ping_percentile_ms(0.5).expect("replies");
        for load in [Load::Bulk, Load::Flood] {
            let of = format!("seed {seed}, {load:?}");
            let result = probed(&shaped(load));
            assert_eq!(result.loss_percent, 0.0, "{of}");
            assert_eq!(result.ping_loss_percent(), 0.0, "{of}");
            let p99 = result.ping_percentile_ms(0.99).expect("replies");
            assert!(p99 <= base + 60.0, "{of}: {p99} over {base}");
            let (page, before) = (result.page_mean_ms(), idle.page_mean_ms());
            let (page, before) = (page.expect("pages"), before.expect("pages"));
            assert!(page <= 1.25 * before, "{of}: {page} over {before}");
            let (share, _) = share(&shaped(load)).expect("a share");
            assert!((0.48..=0.52).contains(&share), "{of}: {share}");
        }
    }
}

#[test]
fn another_seed_is_another_run() {
    let of = |seed| probed(&setup(&Treatment::None, Load::Bulk, seed)).pings;
    assert_ne!(of(1), of(2));
}

#[test]
fn what_is_stopped_ends_with_what_it_has() {
    let setup = unshaped(Load::Bulk);
    setup.stop.set();
    let result = probed(&setup);
    assert_eq!((result.page_failures, result.pings.len()), (0, 0));
}
