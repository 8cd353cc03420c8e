//! Connections with packets of late, for reports while a capture runs.

use super::{Analyzer, Place};
use crate::connection::Connection;

impl Analyzer {
    /// Calls `see` for each unfinished connection with packets since the last call, and for those for which it returned
    /// true then, if [`Config::recent`](super::Config::recent) is set. The cost does not depend on the number of other connections.
    pub fn recent(&mut self, mut see: impl FnMut(&Connection) -> bool) {
        let mut recent = core::mem::take(&mut self.recent);
        recent.sort_unstable();
        recent.dedup();
        let mut thawed = Connection::default();
        recent.retain(|&slot| match self.slots[slot as usize].place {
            Place::Hot(at) => {
                let hot = &mut self.hot[at as usize];
                hot.recent = see(&hot.connection);
                hot.recent
            }
            Place::Frozen(ticket) => {
                let thaws = thawed.thaw(self.shelf.get(ticket));
                thaws.is_ok() && see(&thawed)
            }
            Place::Free => false,
        });
        self.recent = recent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyzer::Config;
    use crate::key::FlowKey;
    use crate::segment::{SYN, Segment};
    use crate::verdict::Nobody;

    fn packet(analyzer: &mut Analyzer, number: u64, port: u16) {
        let (key, from_low) = FlowKey::new(&[1; 16], port, &[2; 16], 80, 0);
        let segment = Segment {
            number,
            time: number as i64,
            clock: number as i64,
            key,
            from_low,
            flags: SYN,
            ..Segment::default()
        };
        analyzer.packet(&segment, &[], &mut Nobody);
    }

    /// The lower ports of the connections seen; `keep` is kept.
    fn seen(analyzer: &mut Analyzer, keep: u16) -> Vec<u16> {
        let mut ports = Vec::new();
        analyzer.recent(|connection| {
            let port = connection.a_end().1;
            ports.push(port);
            port == keep
        });
        ports.sort_unstable();
        ports
    }

    #[test]
    fn only_connections_with_packets_and_kept_ones_are_seen() {
        // With room for few hot connections, some are frozen in between.
        for hot in [2, 64] {
            let mut analyzer = Analyzer::new(Config {
                recent: true,
                hot,
                ..Config::default()
            });
            for port in 1..=50 {
                packet(&mut analyzer, u64::from(port), port);
            }
            assert_eq!(seen(&mut analyzer, 7), (1..=50).collect::<Vec<_>>());
            assert_eq!(seen(&mut analyzer, 7), [7]);
            for round in 0..3 {
                for port in [3, 9, 3] {
                    packet(&mut analyzer, 100 + round, port);
                }
            }
            assert_eq!(seen(&mut analyzer, 0), [3, 7, 9]);
            assert!(seen(&mut analyzer, 0).is_empty());
            assert!(analyzer.held() == 50);
        }
    }

    #[test]
    fn the_list_stays_short_while_nobody_asks() {
        let mut analyzer = Analyzer::new(Config {
            recent: true,
            hot: 1,
            ..Config::default()
        });
        for number in 0..20_000 {
            packet(&mut analyzer, number, (number % 3) as u16 + 1);
        }
        // New connections make it tidy up.
        packet(&mut analyzer, 20_000, 99);
        assert!(analyzer.recent.len() <= 4);
    }
}
