//! Hundreds of wires that lose, double and reorder: links come up, or end for a reason.

use base::Duration;
use ppp::{Authentication, Event, State};

use crate::harness::{Pair, SECRET, Wire, client, network};

#[test]
fn links_come_up_over_bad_wires_or_end_with_a_reason() {
    let mut up = 0;
    for seed in 0..400 {
        let by = match seed % 2 {
            0 => Authentication::Pap,
            _ => Authentication::ChapMd5,
        };
        let wire = Wire {
            loss: 5 + seed % 30,
            duplicates: seed % 20,
            reordered: seed % 25,
        };
        let mut pair = Pair::new(
            network(&[by], seed),
            client(SECRET, seed + 1_000),
            wire,
            seed,
        );
        pair.up();
        pair.run(Duration::from_secs(50));
        let states = pair.ends.each_ref().map(|end| end.link.states());
        let ended = pair.ends.iter().all(|end| {
            let mut events = end.events.iter();
            events.any(|event| matches!(event, Event::Ended(_)))
        });
        let opened = states == [[State::Opened; 3]; 2];
        // A layer that had no answer ten times is Stopped, while the others go on.
        let gave_up = states.as_flattened().contains(&State::Stopped);
        assert!(opened || ended || gave_up, "seed {seed}: {states:?}");
        up += u64::from(opened);
    }
    // With a third of the frames lost, ten tries of each layer nearly always suffice.
    assert!(up >= 390, "{up} of 400 came up");
}
