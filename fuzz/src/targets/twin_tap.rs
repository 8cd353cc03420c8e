//! Packets in any order and with any numbers through a tap, and the inference of a path from them.

use twin::{Figures, Flow, Path, Tap};

/// Octets per packet of the input.
const STEP: usize = 8;

/// Takes packets, eight octets each: kind, time since the packet before, place, length.
///
/// # Panics
/// If a flow counts more bytes as delivered than were sent, or a round trip begins before time does.
pub fn target(data: &[u8]) {
    let mut taps = [Tap::new(1000, 66), Tap::new(1448, 66)];
    let mut now = 0_u64;
    for packet in data.chunks_exact(STEP) {
        let [kind, wait, a, b, c, d, e, f] = [0, 1, 2, 3, 4, 5, 6, 7].map(|at| packet[at]);
        // Captures run backwards at times.
        now = match kind & 0x40 {
            0 => now + (u64::from(wait) << (kind >> 4 & 3)) * 100_000,
            _ => now.saturating_sub(u64::from(wait) * 1_000_000),
        };
        let tap = &mut taps[usize::from(kind & 1)];
        let place = |high: u8, low: u8| u64::from(u16::from_be_bytes([high, low])) * 100;
        let near = |offset: u64| match kind & 2 {
            0 => tap.top() + offset / 64,
            _ => offset,
        };
        let (first, second) = (near(place(a, b)), place(c, d));
        match kind >> 2 & 3 {
            0 | 1 => tap.data(now, first, u32::from(e) * 20 + 1),
            2 => tap.ack(now, first.min(tap.top()), second, &[]),
            _ => {
                let block = (first, first + u64::from(f) * 100);
                tap.ack(now, second, 65_535, &[block, (second, first)]);
            }
        }
    }
    let flows = taps.map(Tap::finish);
    for flow in &flows {
        assert!(flow.delivered() <= flow.bytes());
        assert!(flow.trips.iter().all(|trip| trip.time <= trip.at));
    }
    let flows: Vec<&Flow> = flows.iter().collect();
    let figures = Figures::of(&flows);
    assert!(figures.rtt_ms.iter().all(|time| time.is_finite()));
    if let Ok(path) = Path::infer(&flows) {
        assert!(
            path.rate_bps.low <= path.rate_bps.value && path.rate_bps.value <= path.rate_bps.high
        );
        assert_eq!(path.bases.len(), flows.len());
    }
}
