//! What a sender waited for, as a band over its graphs.

use super::chart::{BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION};
use crate::why::{CAUSES, Cause, Why};

/// A span of time with one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Band {
    /// The sender is end `a`.
    pub from_a: bool,
    /// Its start and end, in nanoseconds since the connection's first packet.
    pub from: i64,
    /// See `from`.
    pub to: i64,
    /// What the sender waited for.
    pub cause: Cause,
}

/// The division of time so far, of both senders.
#[derive(Debug, Clone, Default)]
pub(super) struct Divided {
    upto: [i64; 2],
    times: [[i64; CAUSES]; 2],
    /// Index of the last band of each.
    last: [Option<usize>; 2],
}

impl Divided {
    /// Appends what has been divided since the last call. Adjacent spans with the same cause become one band.
    pub(super) fn append(&mut self, why: &Why, first_time: i64, bands: &mut Vec<Band>) {
        for (index, sender) in [&why.a, &why.b].into_iter().enumerate() {
            if self.upto[index] == sender.divided() {
                continue;
            }
            let mut at = match self.upto[index] {
                0 => first_time,
                upto => upto,
            };
            self.upto[index] = sender.divided();
            for cause in Cause::all() {
                let time = sender.shares()[cause as usize].time;
                let before = std::mem::replace(&mut self.times[index][cause as usize], time);
                // A recovery that turns out to be needless moves its time: the band keeps what was believed first.
                if time <= before {
                    continue;
                }
                let to = at.saturating_add(time - before).min(sender.divided());
                let band = Band {
                    from_a: index == 0,
                    from: at.saturating_sub(first_time),
                    to: to.saturating_sub(first_time),
                    cause,
                };
                at = to;
                join(bands, &mut self.last[index], band);
            }
        }
    }
}

/// Appends a band, or lengthens the sender's last one.
fn join(bands: &mut Vec<Band>, last: &mut Option<usize>, band: Band) {
    if band.to <= band.from {
        return;
    }
    match last.and_then(|index| bands.get_mut(index)) {
        Some(before) if before.cause == band.cause && before.to == band.from => {
            before.to = band.to;
        }
        _ => {
            *last = Some(bands.len());
            bands.push(band);
        }
    }
}

/// The colour of a cause: one for each kind.
pub(super) const fn colour(cause: Cause) -> &'static str {
    match cause {
        Cause::Handshake | Cause::Tls => BLACK,
        Cause::Idle | Cause::Application => "#bbbbbb",
        Cause::Receiver => BLUE,
        Cause::FastRetransmit
        | Cause::Timeout
        | Cause::TailLoss
        | Cause::Spurious
        | Cause::AfterLoss => VERMILION,
        Cause::Queue => ORANGE,
        Cause::Policer => PURPLE,
        Cause::SlowStart => SKY,
        Cause::Pacing => GREEN,
        Cause::Unknown => "#eeeeee",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_spans_with_one_cause_are_one_band() {
        let band = |from_a, from, to, cause| Band {
            from_a,
            from,
            to,
            cause,
        };
        let (mut bands, mut last) = (Vec::new(), [None; 2]);
        for next in [
            band(true, 0, 5, Cause::Queue),
            band(false, 0, 3, Cause::Application),
            band(true, 5, 9, Cause::Queue),
            band(true, 9, 9, Cause::Idle),
            band(true, 9, 12, Cause::Receiver),
        ] {
            join(&mut bands, &mut last[usize::from(next.from_a)], next);
        }
        let expected = [
            band(true, 0, 9, Cause::Queue),
            band(false, 0, 3, Cause::Application),
            band(true, 9, 12, Cause::Receiver),
        ];
        assert_eq!(bands, expected);
    }
}
