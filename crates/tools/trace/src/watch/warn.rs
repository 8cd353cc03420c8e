//! Warnings about single packets, each on a line of standard error.

use trace::{Connection, Seen, Segment, Verdict};
use wire::tcp::Tcp;

use crate::low::Warnings;

/// Prints the warnings.
pub(super) struct Warn {
    wanted: Warnings,
    last_time: i64,
}

impl Warn {
    /// `None` if no warning about single packets is to be printed.
    pub(super) fn new(wanted: Warnings) -> Option<Warn> {
        let any = wanted.time
            || wanted.truncated
            || wanted.reserved
            || wanted.duplicates
            || wanted.sequences;
        any.then_some(Warn {
            wanted,
            last_time: i64::MIN,
        })
    }

    pub(super) fn packet(&mut self, seen: &Seen<'_, '_>) {
        let time = seen.record.time_ns;
        if self.wanted.time && time < self.last_time {
            let back = (self.last_time - time) as f64 / 1e9;
            eprintln!(
                "packet {}: {back:.6} s before the one before it",
                seen.number
            );
        }
        self.last_time = time;
        let packet = seen.packet;
        if self.wanted.truncated {
            use wire::tcp::TcpError;
            match Tcp::parse(packet) {
                Err(TcpError::Truncated) => {
                    eprintln!(
                        "TCP packet {} truncated too short to trace, ignored",
                        seen.number
                    );
                }
                Ok(tcp) if tcp.options.cut => {
                    eprintln!("packet {} too short for its TCP options", seen.number);
                }
                _ => {}
            }
        }
    }

    pub(super) fn segment(
        &mut self,
        seen: &Seen<'_, '_>,
        tcp: &Tcp<'_>,
        connection: &Connection,
        segment: &Segment,
        verdict: &Verdict,
    ) {
        let number = seen.number;
        if self.wanted.reserved
            && let Some(octet) = seen.packet.transport.get(12)
            && octet & 0x0e != 0
        {
            eprintln!(
                "packet {number}: reserved bits of the TCP header are {:#x}",
                octet & 0x0e
            );
        }
        if self.wanted.duplicates && verdict.hardware_duplicate {
            eprintln!(
                "packet {number}: hardware duplicate (sequence number {}, IP identification {})",
                tcp.sequence, segment.id
            );
        }
        if !self.wanted.sequences || !(segment.syn() || segment.fin()) {
            return;
        }
        let this = if verdict.from_a {
            &connection.a
        } else {
            &connection.b
        };
        if this.bad_behaviour && (segment.syn() && this.syns > 1 || segment.fin() && this.fins > 1)
        {
            let what = if segment.syn() { "SYN" } else { "FIN" };
            eprintln!("packet {number}: {what} again, and one had another sequence number");
        }
    }
}
