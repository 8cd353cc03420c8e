use base::{Duration, Instant};
use qos::Packet;
use qos::codel::Parameters;
use qos::codel::control::{Law, Tally, Turn};

use super::queue::Members;
use super::{Flows, Queue};
use crate::Direction;
use crate::packets::Packets;
use crate::spec::Fairness;

/// A queue with its tables.
struct Side {
    flows: Flows,
    packets: Packets,
    queue: Queue,
    tally: Tally,
}

impl Side {
    fn new() -> Self {
        Self {
            flows: Flows::new(Direction::Down, 1_000, 7),
            packets: Packets::new(),
            queue: Queue::new(3, 5, 0),
            tally: Tally::default(),
        }
    }

    fn push(&mut self, fairness: Fairness, packet: &Packet) {
        let Self {
            flows,
            packets,
            queue,
            ..
        } = self;
        flows.push(queue, fairness, packets, packet).unwrap();
    }

    /// Gives the only flow its entries before they are needed.
    fn spread(&mut self) {
        if self.queue.packets > 0 {
            self.flows.many(&mut self.queue, &self.packets);
        }
    }

    fn take(&mut self, law: &Law, now: Instant) -> Option<(u32, bool)> {
        let mut turn = Turn {
            law,
            tally: &mut self.tally,
            pool: &mut self.packets,
            now,
        };
        let id = self.flows.take(&mut self.queue, &mut turn)?;
        Some(self.packets.release_sent(id))
    }

    /// All that a caller can see.
    fn seen(&mut self) -> (u32, u32, Vec<(u32, qos::Reason)>, u64) {
        let lost = self.packets.discarded().collect();
        let Queue {
            packets, octets, ..
        } = self.queue;
        (packets, octets, lost, self.tally.ecn_mark)
    }
}

#[test]
fn a_single_flow_without_entries_is_served_as_one_with_entries() {
    let law = Law::new(&Parameters::default());
    let mut solo_at_second_flow = 0;
    for seed in 0..400_u64 {
        let mut state = seed;
        let mut random = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let (mut lean, mut full) = (Side::new(), Side::new());
        let fairness = [Fairness::Hosts, Fairness::Flows, Fairness::None][random(3) as usize];
        let flows = 1 + random(12);
        let mut now = Instant::ZERO;
        for handle in 0..1_000 {
            match random(20) {
                0..=9 => {
                    let mut packet = Packet {
                        handle,
                        length: 40 + random(1_460) as u32,
                        arrived: now,
                        ..Packet::default()
                    };
                    // The first flow is by far the most frequent.
                    let flow = random(30).saturating_sub(29 - flows);
                    packet.keys.outer.destination = [1 + (flow / 2) as u8; 16];
                    packet.keys.outer.source_port = flow as u16;
                    packet.keys.traffic_class = random(3) as u8;
                    let was_solo = matches!(lean.queue.members, Members::Solo(_));
                    lean.push(fairness, &packet);
                    let is_solo = matches!(lean.queue.members, Members::Solo(_));
                    solo_at_second_flow += u32::from(was_solo && !is_solo);
                    full.push(fairness, &packet);
                }
                10 => {
                    let lost = lean.flows.discard_one(&mut lean.queue, &mut lean.packets);
                    let other = full.flows.discard_one(&mut full.queue, &mut full.packets);
                    assert_eq!(lost, other, "seed {seed}");
                }
                11 => now += Duration::from_millis(random(100)),
                _ => {
                    now += Duration::from_micros(random(2_000));
                    assert_eq!(lean.take(&law, now), full.take(&law, now), "seed {seed}");
                }
            }
            full.spread();
            assert_eq!(lean.seen(), full.seen(), "seed {seed}");
        }
    }
    assert!(solo_at_second_flow > 1_000, "{solo_at_second_flow}");
}
