//! An edge with connected subscribers: real clients dial in, their datagrams are damaged on the way, packets
//! flow in both directions, answers arrive early, late and twice, and an operator changes settings meanwhile.
//!
//! An input is an octet that chooses the edge, then steps: an octet whose low half chooses the action and whose
//! high half its target, an octet of length, and that many octets of parameters.

mod books;
mod packets;
mod setup;
mod world;

use base::Duration;
use edge::End;

use packets::{Mend, tun};
use setup::{CLIENTS, STRANGERS};
use world::{Damage, World};

/// How long one step waits, by its high half.
const PAUSES_MS: [u64; 16] = [
    0, 1, 10, 100, 1_000, 2_000, 3_000, 3_000, 5_000, 10_000, 10_000, 15_000, 20_000, 30_000,
    61_000, 121_000,
];

/// Takes an input as described above.
///
/// # Panics
/// If an address or a route has the wrong holder, an account is out of order, a packet is forwarded that must
/// not be, or anything is left after everything has ended.
pub fn target(data: &[u8]) {
    let (&choice, mut rest) = data.split_first().unwrap_or((&0, &[]));
    let mut world = World::new(choice);
    while let [step, length, after @ ..] = rest {
        let (octets, after) = after.split_at(usize::from(*length).min(after.len()));
        take(&mut world, step & 15, usize::from(step >> 4), octets);
        world.settle();
        world.check();
        rest = after;
    }
    world.finish(choice & 128 != 0);
}

/// One step.
fn take(world: &mut World, what: u8, whom: usize, octets: &[u8]) {
    let first = octets.first().copied().unwrap_or(0);
    match what {
        0 => world.dial(whom),
        1 => {
            if let Some(&[kind, skip, at, value]) = octets.first_chunk() {
                world.damage(
                    whom & 1 != 0,
                    Damage {
                        kind,
                        skip: skip % 8,
                        at,
                        value,
                    },
                );
            }
        }
        2 => match STRANGERS.get(whom % 4) {
            Some(stranger) => world.receive(stranger, octets),
            None => world.receive(CLIENTS[whom & 1], octets),
        },
        3 => world.say(whom, octets),
        4 => world.packet_up(whom, &Mend(first), octets.get(1..).unwrap_or(&[])),
        5 => world.client_forward(whom, octets),
        6 => world.inside(octets.to_vec()),
        7 => {
            let mend = Mend(first);
            let to = world.destination(whom, mend.is_behind());
            world.inside(tun(&mend, to, octets.get(1..).unwrap_or(&[])));
        }
        8 => world.answer_late(whom, first),
        9 => world.answer_again(whom, first),
        10 => world.pass(Duration::from_millis(PAUSES_MS[whom])),
        11 => {
            let reason = match first & 1 {
                0 => End::Administrator,
                _ => End::Disconnected,
            };
            world.drop_subscriber(whom, reason);
        }
        12 => world.filter(whom),
        13 => world.tap(whom),
        14 => world.client_ends(whom, first),
        _ => match whom {
            0..8 => world.asks_at_once = whom & 1 == 0,
            8..12 => world.crash(whom & 1),
            _ if first == 0x5d => world.shut_down(),
            _ => {}
        },
    }
}
