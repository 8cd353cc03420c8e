//! The largest packet that reaches a host in one piece.
//!
//! Each packet asks for an answer: an ICMP echo, or where that is not possible, a UDP datagram to a closed port. A router
//! that cannot pass a packet reports the MTU of its next link. If large packets get no answer and small ones do, the
//! large ones vanish without a report; [`search`] then finds the limit by halves.
//!
//! What this cannot see: a firewall that answers in the host's place, and a path that differs for the daemon's own port.
//! An echo reply is as long as the request, so a loss on the way back counts as one on the way there.

use std::io;
use std::net::IpAddr;

use base::Duration;
use reactor::probe::{Fate, Probe, Way, path_mtu, send};

use crate::host::{Limit, PathFact, PathUse, Probed};
use crate::wants::Wants;

/// Hosts that are probed, each by a thread.
const HOSTS_MAX: usize = 64;
/// Larger packets are not tried: no configuration asks for them, and loopback would pass any.
const SIZE_MAX: u32 = 9_216;
/// Transmissions of a packet before its silence counts.
const TRANSMISSIONS: u32 = 2;

/// The path to each RADIUS server, neighbour and given peer, and how many were left out.
pub(super) fn facts(wants: &Wants) -> (Vec<PathFact>, usize) {
    let servers = wants.servers.iter();
    let servers = servers.map(|server| (server.address.ip(), PathUse::Radius));
    let neighbours = wants.neighbours.iter().map(|to| (*to, PathUse::Bgp));
    let peers = wants.peers.iter().map(|to| (*to, PathUse::Tunnel));
    let mut all: Vec<(IpAddr, PathUse)> = peers.chain(servers).chain(neighbours).collect();
    let mut known = std::collections::BTreeSet::new();
    all.retain(|one| known.insert(*one));
    let left = all.split_off(all.len().min(HOSTS_MAX));
    let facts = std::thread::scope(|scope| {
        let one = |&(to, used): &(IpAddr, PathUse)| scope.spawn(move || fact(to, used));
        let threads: Vec<_> = all.iter().map(one).collect();
        threads
            .into_iter()
            .filter_map(|one| one.join().ok())
            .collect()
    });
    (facts, left.len())
}

fn fact(to: IpAddr, used: PathUse) -> PathFact {
    let (mtu, probed) = match path_mtu(to) {
        Err(error) => (Err(error), Ok(Probed::Unanswered)),
        Ok(kernel) => (Ok(kernel), probe(to, kernel.min(SIZE_MAX))),
    };
    PathFact {
        to,
        used,
        mtu,
        probed,
    }
}

/// By echo if this user may and the host answers it; else by a closed port.
fn probe(to: IpAddr, kernel: u32) -> io::Result<Probed> {
    let least = if to.is_ipv4() { 576 } else { 1_280 }.min(kernel);
    let mut last = Ok(Probed::Unanswered);
    for way in [Way::Echo, Way::ClosedPort] {
        // Hosts send one ICMP error a second to an address, and replies without a limit.
        let wait = match way {
            Way::Echo => Duration::from_millis(600),
            Way::ClosedPort => Duration::from_millis(1_100),
        };
        let mut fate = |size, may_fragment| {
            let probe = Probe {
                size,
                way,
                may_fragment,
            };
            for _ in 0..TRANSMISSIONS {
                match send(to, probe, wait)? {
                    Fate::Silence => {}
                    fate => return Ok(fate),
                }
            }
            Ok(Fate::Silence)
        };
        last = search(kernel, least, &mut fate);
        if matches!(last, Ok(Probed::Passes { .. })) {
            break;
        }
    }
    last
}

/// Finds the largest size that arrives, with packets of `least` to `kernel` bytes. `send` gets a size, and whether the
/// packet may be fragmented.
fn search(
    kernel: u32,
    least: u32,
    send: &mut dyn FnMut(u32, bool) -> io::Result<Fate>,
) -> io::Result<Probed> {
    if send(least, false)? != Fate::Arrived {
        return Ok(Probed::Unanswered);
    }
    let (mut passes, mut fails) = (least, kernel + 1);
    let mut next = kernel;
    let mut is_reported = false;
    while passes + 1 < fails {
        match send(next, false)? {
            Fate::Arrived => passes = next,
            Fate::TooLarge(mtu) => {
                is_reported = true;
                fails = next;
                // A report is right at once, unless it is that of a later and narrower link.
                if (passes + 1..fails).contains(&mtu) {
                    next = mtu;
                    continue;
                }
            }
            Fate::NotSent | Fate::Silence => fails = next,
        }
        next = match fails {
            // The reported value arrived, so the search is over once the next size fails.
            _ if is_reported && passes == next => break,
            fails => passes + (fails - passes) / 2,
        };
    }
    let limit = match () {
        () if is_reported => Limit::Reported,
        () if passes < kernel => Limit::Silent {
            is_fragmented: send(kernel, true)? == Fate::Arrived,
        },
        // Where the interface takes more, a router has reported this value earlier.
        () => match send(kernel + 1, false)? {
            Fate::TooLarge(_) => Limit::Reported,
            _ => Limit::Interface,
        },
    };
    Ok(Probed::Passes { passes, limit })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path that carries `carries` bytes: what `search` finds, and how many packets it took.
    fn found(kernel: u32, carries: u32, beyond: Fate, is_fragmented: bool) -> (Probed, usize) {
        let mut sent = 0;
        let probed = search(kernel, 576, &mut |size, may_fragment| {
            sent += 1;
            Ok(match size {
                size if size <= carries || may_fragment && is_fragmented => Fate::Arrived,
                _ => beyond,
            })
        });
        (probed.unwrap(), sent)
    }

    #[test]
    fn an_open_path_takes_three_packets() {
        let limit = Limit::Interface;
        let (passes, whole) = (
            1_500,
            Probed::Passes {
                passes: 1_500,
                limit,
            },
        );
        assert_eq!(found(1_500, passes, Fate::NotSent, false), (whole, 3));
    }

    #[test]
    fn a_reported_mtu_is_tried_and_taken() {
        for mtu in [577, 1_280, 1_400, 1_499] {
            let limit = Limit::Reported;
            let whole = Probed::Passes { passes: mtu, limit };
            assert_eq!(
                found(1_500, mtu, Fate::TooLarge(mtu), true),
                (whole, 3),
                "{mtu}"
            );
        }
        // The kernel has cached the report of an earlier packet.
        let limit = Limit::Reported;
        let whole = Probed::Passes {
            passes: 1_400,
            limit,
        };
        assert_eq!(found(1_400, 1_400, Fate::TooLarge(1_400), true).0, whole);
    }

    #[test]
    fn packets_that_vanish_are_bounded_to_the_byte() {
        for carries in [576, 577, 1_000, 1_399, 1_400, 1_498, 1_499] {
            for is_fragmented in [false, true] {
                let (probed, sent) = found(1_500, carries, Fate::Silence, is_fragmented);
                let limit = Limit::Silent { is_fragmented };
                let expected = Probed::Passes {
                    passes: carries,
                    limit,
                };
                assert_eq!(probed, expected, "{carries}");
                assert!(sent <= 14, "{carries}: {sent} packets");
            }
        }
    }

    /// Routers may report nonsense: the search ends, and what it names has arrived.
    #[test]
    fn a_wrong_report_is_not_believed() {
        for report in [0, 68, 1_450, 1_500, 9_000, u32::MAX] {
            let (probed, sent) = found(1_500, 1_400, Fate::TooLarge(report), false);
            let limit = Limit::Reported;
            let passes = match probed {
                Probed::Passes { passes, .. } => passes,
                Probed::Unanswered => 0,
            };
            assert_eq!(probed, Probed::Passes { passes, limit });
            assert!(
                passes <= 1_400 && sent <= 16,
                "{report}: {passes}, {sent} packets"
            );
        }
    }

    #[test]
    fn a_host_that_answers_nothing_gets_one_size() {
        let mut sizes = Vec::new();
        let probed = search(1_500, 576, &mut |size, _| {
            sizes.push(size);
            Ok(Fate::Silence)
        });
        assert_eq!((probed.unwrap(), sizes), (Probed::Unanswered, vec![576]));
    }
}
