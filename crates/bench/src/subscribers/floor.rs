//! The load on the bare loop: as many datagrams per subscriber as an LNS exchanges, of the same
//! mean length, without content.

use std::io;
use std::net::SocketAddr;

use base::Duration;

use super::load::Wave;
use crate::harness::datagrams::{Datagrams, Next};

/// The datagrams of one subscriber.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shape {
    /// Number of requests; each is answered before the next is sent.
    pub(super) rounds: u32,
    pub(super) request_octets: usize,
    pub(super) answer_octets: usize,
}

impl Shape {
    /// The datagrams of one subscriber in that wave. The larger of the two directions counts, since
    /// the bare loop replies to every datagram.
    pub(super) fn of(wave: &Wave) -> Self {
        let up = u64::from(wave.up.max(1));
        let mean = |(count, octets): (u64, u64)| octets.div_ceil(count.max(1)).max(1) as usize;
        let most = wave.sent.0.max(wave.received.0);
        Self {
            rounds: most.div_ceil(up).max(1) as u32,
            request_octets: mean(wave.sent),
            answer_octets: mean(wave.received),
        }
    }
}

/// Sends requests from each address of `load`, each after the reply to the one before, `window`
/// addresses at a time. Returns how many addresses got all replies within `cap`.
///
/// # Errors
/// The kernel's error for the socket.
pub(super) fn exchange(
    load: &mut Datagrams,
    server: SocketAddr,
    shape: &Shape,
    window: u32,
    cap: Duration,
) -> io::Result<u32> {
    // Replies still to come, for each address.
    let mut left = vec![shape.rounds; load.count() as usize];
    load.exchange(server, window, cap, shape.request_octets, |place, _| {
        let Some(left) = place.and_then(|place| left.get_mut(place)) else {
            return Next::Ignore;
        };
        *left = left.saturating_sub(1);
        match *left {
            0 => Next::Done,
            _ => Next::Request(shape.request_octets),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bare_loop_s_subscriber_has_the_datagrams_of_a_real_one() {
        let wave = Wave {
            up: 10,
            sent: (75, 3_000),
            received: (81, 8_100),
            ..Wave::default()
        };
        let shape = Shape {
            rounds: 9,
            request_octets: 40,
            answer_octets: 100,
        };
        assert_eq!(Shape::of(&wave), shape);
        assert_eq!(Shape::of(&Wave::default()).rounds, 1);
    }
}
