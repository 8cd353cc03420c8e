use base::{Duration, Instant};
use qos::Discipline;
use qos::fifo::{Fifo, Limit};
use qos::tbf::{Options, Tbf};

use super::{Queues, Setup, probe, share};
use crate::gateway::rows::Load;
use crate::gateway::treatment::ETHERNET;

/// The line as published: what goes up at 2.5 Mbit/s waits in a FIFO of a hundred packets.
fn line(rate_bps: u64) -> Box<dyn Discipline> {
    let options = Options {
        rate_bps,
        burst: 1_600,
        peak: None,
    };
    let fifo = Box::new(Fifo::new(Limit::Packets(100)));
    Box::new(Tbf::new(&options, fifo, None, Instant::ZERO))
}

fn open() -> Box<dyn Discipline> {
    Box::new(Fifo::new(Limit::Packets(1_000)))
}

fn unshaped(load: Load) -> Setup {
    Setup {
        seed: 1,
        router: Queues {
            up: open(),
            down: open(),
            overhead: ETHERNET,
        },
        modem: Queues {
            up: line(2_500_000),
            down: line(20_000_000),
            overhead: ETHERNET,
        },
        delay: Duration::from_millis(10),
        ecn: false,
        load,
        bulk: crate::gateway::rows::BULK_CONNECTIONS,
        seconds: 20,
    }
}

#[test]
fn an_idle_line_loses_nothing_and_waits_for_nobody() {
    let result = probe(unshaped(Load::None));
    assert_eq!(result.loss_percent, 0.0);
    assert_eq!((result.ping_loss_percent(), result.page_failures), (0.0, 0));
    let p50 = result.ping_percentile_ms(0.5).expect("replies");
    // Two ways of 10 ms; a page in between may be waited for.
    assert!((20.0..25.0).contains(&p50), "{p50}");
    assert!(result.page_mean_ms().expect("pages") < 500.0);
}

#[test]
fn three_bulk_connections_fill_the_fifo_and_everybody_waits() {
    let result = probe(unshaped(Load::Bulk));
    let p50 = result.ping_percentile_ms(0.5).expect("replies");
    // A hundred packets of 1,514 octets at 2.5 Mbit/s are 484 ms.
    assert!((200.0..520.0).contains(&p50), "{p50}");
    let idle = probe(unshaped(Load::None)).page_mean_ms().expect("pages");
    assert!(
        result
            .page_mean_ms()
            .is_none_or(|loaded| loaded > 2.0 * idle)
    );
}

#[test]
fn a_flood_of_three_times_the_line_takes_nearly_every_place_in_the_fifo() {
    let result = probe(unshaped(Load::Flood));
    // 71 % of all is lost; of a thin stream more, the more evenly the flood comes: whoever is next takes the free place.
    assert!(
        (65.0..90.0).contains(&result.loss_percent),
        "{}",
        result.loss_percent
    );
}

#[test]
fn bulk_data_use_the_line_to_the_full() {
    let (share, goodput) = share(unshaped(Load::Bulk));
    assert!(goodput > 2_500_000.0 * 0.9 * 1_448.0 / 1_514.0, "{goodput}");
    assert!((0.05..0.6).contains(&share), "{share}");
}

#[test]
fn the_same_seed_gives_the_same_result_to_the_last_bit() {
    let once = probe(unshaped(Load::Bulk));
    assert_eq!(once, probe(unshaped(Load::Bulk)));
}

/// The gateway's policy: everything at 96 % of the line, per host, then per flow.
fn shaped(load: Load) -> Setup {
    let fair = |rate_bps, down| -> Box<dyn Discipline> {
        let options = Options {
            rate_bps,
            burst: 1_600,
            peak: None,
        };
        let mut queue = qos::fair::Options::default();
        if down {
            queue.hosts = qos::classify::KeySet::HOST_DST;
        }
        Box::new(Tbf::new(
            &options,
            Box::new(qos::fair::Fair::new(&queue, 1)),
            None,
            Instant::ZERO,
        ))
    };
    Setup {
        router: Queues {
            up: fair(2_400_000, false),
            down: fair(19_000_000, true),
            overhead: ETHERNET,
        },
        ..unshaped(load)
    }
}

#[test]
fn with_the_policy_a_host_notices_little_of_its_neighbours_load() {
    let idle = probe(shaped(Load::None));
    let base = idle.ping_percentile_ms(0.5).expect("replies");
    for load in [Load::Bulk, Load::Flood] {
        let result = probe(shaped(load));
        assert_eq!(result.loss_percent, 0.0, "{load:?}");
        assert_eq!(result.ping_loss_percent(), 0.0, "{load:?}");
        let p99 = result.ping_percentile_ms(0.99).expect("replies");
        assert!(p99 <= base + 60.0, "{load:?}: {p99} over {base}");
        let (page, before) = (result.page_mean_ms(), idle.page_mean_ms());
        let (page, before) = (page.expect("pages"), before.expect("pages"));
        assert!(page <= 1.25 * before, "{load:?}: {page} over {before}");
        let (share, _) = share(shaped(load));
        // Three connections of 0.4 Mbit/s each lose what CoDel takes after 5 ms, less than two packets' time: the model's
        // TCP, without RACK and tail loss probes, then leaves some of A's half to B.
        assert!((0.45..=0.6).contains(&share), "{load:?}: {share}");
    }
}
