//! A simulated path whose losses, delays and clocks are known: what the comparison reports must be exactly that.

use paths::{Align, Config, Findings, FlowKey, Lost, Matcher, Point, Sight, Sink, Way};
use proptest::prelude::*;

const MS: i64 = 1_000_000;
const ACK: u16 = 0x10;
const SYN: u16 = 0x02;

/// A path and its traffic.
#[derive(Debug, Clone)]
struct Path {
    seed: u64,
    flows: u64,
    packets: u64,
    /// Of a thousand packets.
    loss: u64,
    reorder: u64,
    duplicate: u64,
    stamps: bool,
    ids: bool,
    nat: bool,
    /// Added to the sequence numbers of the first direction.
    moved: u32,
    /// Segments of the sender are cut into so many packets.
    cut: u64,
    /// A lost segment is sent again at once, mostly with the same time stamp.
    is_quick: bool,
    /// Each capture has the packets of its side's sender twice.
    is_twice: bool,
    offset: i64,
    ppm: f64,
    is_swapped: bool,
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }
}

/// A packet on the path: when it passes each point in true time, and its fields at each.
struct Passing {
    from_client: bool,
    near: (i64, Sight),
    far: Vec<(i64, Sight)>,
    lost: u64,
}

/// The captures, and the numbers of the lost packets at each point.
struct Truth {
    captures: [Vec<Sight>; 2],
    lost: [Vec<(u64, u64)>; 2],
    duplicated: u64,
}

fn key(flow: u64, at_server: bool, path: &Path) -> FlowKey {
    let mut key = FlowKey {
        source: [1; 16],
        destination: [9; 16],
        source_port: 1000 + flow as u16,
        destination_port: 80,
        protocol: 6,
    };
    if at_server && path.nat {
        key.source = [7; 16];
        key.source_port = 40_000 - 7 * flow as u16;
    }
    key
}

/// The fields of a packet at the client's and at the server's side of the path.
fn sights(path: &Path, flow: u64, from_client: bool, base: Sight) -> (Sight, Sight) {
    let side = |at_server: bool| {
        let key = key(flow, at_server, path);
        let mut sight = base;
        sight.key = if from_client { key } else { key.reversed() };
        sight.hop_limit = if at_server == from_client { 61 } else { 64 };
        let moved = if at_server { path.moved } else { 0 };
        match from_client {
            true => sight.sequence = sight.sequence.wrapping_add(moved),
            false => sight.acknowledgment = sight.acknowledgment.wrapping_add(moved),
        }
        sight
    };
    (side(false), side(true))
}

fn run_path(path: &Path) -> Vec<Passing> {
    let mut random = Random(path.seed);
    let mut passing = Vec::new();
    let mut id = 1u16;
    for flow in 0..path.flows {
        let (mut sequence, answer) = (random.below(1 << 32) as u32, random.below(1 << 32) as u32);
        let mut time = 2_000 * MS + (random.below(500) as i64) * MS;
        for at in 0..path.packets {
            time += 1 + (random.below(4) as i64) * MS;
            let from_client = at % 3 != 2;
            let length = match (at, from_client) {
                (0, _) | (_, false) => 0,
                _ => 100 + random.below(1300) as u32,
            };
            let mut base = Sight {
                length,
                body: random.below(u64::MAX),
                sequence: if from_client { sequence } else { answer },
                acknowledgment: if from_client { answer } else { sequence },
                flags: if at == 0 { SYN } else { ACK },
                window: 500,
                ..Sight::default()
            };
            if at == 0 {
                base.acknowledgment = 0;
            }
            let is_open = at < 2;
            let mut again = time;
            // Sent again until it arrives, as TCP does.
            loop {
                id = id.wrapping_add(2);
                base.id = if path.ids { id } else { 0 };
                base.stamps = path.stamps.then_some((
                    (again / MS) as u32 ^ (flow as u32) << 20,
                    77 + flow as u32 * 7919,
                ));
                let sent = transmit(path, &mut random, (flow, from_client), base, again);
                let is_lost = !is_open && random.below(1000) < path.loss;
                let bytes = sent.lost;
                passing.push(match is_lost && path.cut == 1 {
                    true => Passing {
                        far: Vec::new(),
                        lost: 1,
                        ..sent
                    },
                    false => sent,
                });
                if !(is_lost && path.cut == 1 && length > 0) && bytes == 0 {
                    break;
                }
                again += match path.is_quick {
                    true => MS / 10 + random.below(400) as i64 * 1000,
                    false => 220 * MS + random.below(50) as i64 * MS,
                };
            }
            if from_client {
                sequence = sequence.wrapping_add(length + u32::from(at == 0));
            }
        }
    }
    passing
}

/// One transmission, cut into parts of which some are lost if the path cuts segments.
fn transmit(
    path: &Path,
    random: &mut Random,
    (flow, from_client): (u64, bool),
    base: Sight,
    time: i64,
) -> Passing {
    let queue = |random: &mut Random| {
        if random.below(4) == 0 {
            0
        } else {
            random.below(900) as i64 * 1000
        }
    };
    let least = if from_client { 2 * MS } else { MS };
    let (client, server) = sights(path, flow, from_client, base);
    let (near, far) = if from_client {
        (client, server)
    } else {
        (server, client)
    };
    let parts = if base.length > 0 { path.cut } else { 1 };
    let each = base.length.div_ceil(parts as u32);
    let mut passing = Passing {
        from_client,
        near: (time, near),
        far: Vec::new(),
        lost: 0,
    };
    let mut arrival = time + least + queue(random);
    for part in 0..parts {
        let start = each * part as u32;
        let length = each.min(base.length.saturating_sub(start));
        let mut sight = far;
        sight.sequence = sight.sequence.wrapping_add(start);
        sight.length = length;
        if part > 0 {
            sight.body = far.body.rotate_left(part as u32) ^ 1;
        }
        if parts > 1 {
            if random.below(1000) < path.loss {
                passing.lost += u64::from(length);
                continue;
            }
            arrival += 1000;
        }
        let late = if random.below(1000) < path.reorder {
            12 * MS
        } else {
            0
        };
        passing.far.push((arrival + late, sight));
        if random.below(1000) < path.duplicate {
            passing.far.push((arrival + late + 10, sight));
        }
    }
    passing
}

/// Packets of UDP before and after all others, so that no other packet is at an edge of the captures.
fn beacons(passing: &mut Vec<Passing>) {
    let end = passing.iter().map(|one| one.near.0).max().unwrap_or(0) + 2_000 * MS;
    for (at, base) in [0, end].into_iter().enumerate() {
        for number in 0..20 {
            for from_client in [true, false] {
                let key = FlowKey {
                    protocol: 17,
                    source: [1; 16],
                    destination: [9; 16],
                    source_port: 53,
                    destination_port: 54,
                };
                let sight = Sight {
                    key: if from_client { key } else { key.reversed() },
                    hop_limit: 64,
                    length: 100,
                    body: 1 + 2 * (number + 100 * at as u64) + 1000 * u64::from(from_client),
                    ..Sight::default()
                };
                let time = base + number as i64 * 10 * MS;
                let far = Sight {
                    hop_limit: 60,
                    ..sight
                };
                let arrival = time + if from_client { 2 * MS } else { MS };
                passing.push(Passing {
                    from_client,
                    near: (time, sight),
                    far: vec![(arrival, far)],
                    lost: 0,
                });
            }
        }
    }
}

/// A packet at a point: its true time, its place among all, the lost bytes if it was lost, and its fields.
type Seen = (i64, usize, Option<u64>, Sight);

/// Both captures, by their own clocks.
fn capture(path: &Path) -> Truth {
    let mut passing = run_path(path);
    beacons(&mut passing);
    let mut seen: [Vec<Seen>; 2] = [Vec::new(), Vec::new()];
    let mut duplicated = 0;
    for (at, one) in passing.iter().enumerate() {
        let near = usize::from(one.from_client == path.is_swapped);
        seen[near].push((
            one.near.0,
            at,
            (one.lost > 0).then_some(one.lost),
            one.near.1,
        ));
        if path.is_twice {
            seen[near].push((one.near.0 + 10_000, at, None, one.near.1));
        }
        let mut before = None;
        for far in &one.far {
            seen[1 - near].push((far.0, at, None, far.1));
            duplicated += u64::from(before == Some(far.1));
            before = Some(far.1);
        }
    }
    let mut truth = Truth {
        captures: [Vec::new(), Vec::new()],
        lost: [Vec::new(), Vec::new()],
        duplicated,
    };
    for (point, seen) in seen.iter_mut().enumerate() {
        seen.sort_by_key(|one| (one.0, one.1));
        for (number, (time, at, lost, sight)) in (1..).zip(seen.iter()) {
            let shift = if point == 1 {
                path.offset + (*time as f64 * path.ppm * 1e-6) as i64
            } else {
                0
            };
            truth.captures[point].push(Sight {
                number,
                time: time + shift,
                ..*sight
            });
            if let Some(bytes) = lost {
                let whole = passing[*at].far.is_empty();
                let bytes = if whole {
                    u64::from(sight.length)
                } else {
                    *bytes
                };
                truth.lost[point].push((number, bytes));
            }
        }
    }
    truth
}

#[derive(Default)]
struct Losses([Vec<(u64, u64)>; 2], u64);

impl Sink for Losses {
    fn lost(&mut self, lost: &Lost) {
        self.0[lost.point as usize].push((lost.number, lost.bytes));
    }
    fn pair(&mut self, _: &paths::Pair) {
        self.1 += 1;
    }
}

fn compare(captures: &[Vec<Sight>; 2]) -> (Findings, Losses) {
    let mut align = Align::new(3);
    let longest = captures[0].len().max(captures[1].len());
    for at in 0..longest {
        for (point, capture) in [Point::A, Point::B].into_iter().zip(captures) {
            if let Some(sight) = capture.get(at) {
                align.see(point, sight);
            }
        }
    }
    let aligned = align.result().expect("the captures share packets");
    let mut matcher = Matcher::new(Config {
        seed: 5,
        wait: Config::WAIT,
        waiting_max: Config::WAITING_MAX,
        one_clock: false,
        one_file: false,
        differences: aligned.differences,
        centre: aligned.centre,
        first: [captures[0][0].time, captures[1][0].time],
    });
    let mut losses = Losses::default();
    let (mut a, mut b) = (captures[0].iter().peekable(), captures[1].iter().peekable());
    loop {
        let point = match (a.peek(), b.peek()) {
            (Some(at_a), Some(at_b)) => matcher.next(at_a.time, at_b.time),
            (Some(_), None) => Point::A,
            (None, Some(_)) => Point::B,
            (None, None) => break,
        };
        for (point, ended) in [
            (Point::A, a.peek().is_none()),
            (Point::B, b.peek().is_none()),
        ] {
            if ended {
                matcher.end(point, &mut losses);
            }
        }
        let sight = match point {
            Point::A => a.next(),
            Point::B => b.next(),
        };
        matcher.see(point, sight.expect("peeked"), &mut losses);
    }
    let found = matcher.finish(&mut losses);
    for lost in &mut losses.0 {
        lost.sort_unstable();
    }
    (found, losses)
}

fn path() -> impl Strategy<Value = Path> {
    let traffic = (
        any::<u64>(),
        1u64..5,
        20u64..120,
        0u64..120,
        0u64..60,
        0u64..40,
    );
    let fields = (
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        prop_oneof![Just(0u32), any::<u32>()],
    );
    let clocks = (
        -40_000_000_000_000_000i64..40_000_000_000_000_000,
        -60.0f64..60.0,
        any::<bool>(),
    );
    (traffic, fields, clocks).prop_map(|(traffic, fields, clocks)| Path {
        seed: traffic.0,
        flows: traffic.1,
        packets: traffic.2,
        loss: traffic.3,
        reorder: traffic.4,
        duplicate: traffic.5,
        // One of both tells transmissions of the same data apart.
        stamps: fields.0,
        ids: fields.1 || !fields.0,
        nat: fields.2,
        moved: if fields.0 { fields.3 } else { 0 },
        cut: 1,
        is_quick: false,
        is_twice: false,
        offset: clocks.0,
        ppm: clocks.1,
        is_swapped: clocks.2,
    })
}

/// What must hold for any path.
fn check(path: &Path) -> Result<(), TestCaseError> {
    let truth = capture(path);
    let (found, losses) = compare(&truth.captures);
    for (point, way) in [(0, Way::AToB), (1, Way::BToA)] {
        prop_assert_eq!(
            &losses.0[point],
            &truth.lost[point],
            "lost at {} of {:?}",
            point,
            path
        );
        prop_assert_eq!(found.ways[way as usize].extra.packets, 0);
        prop_assert_eq!(found.points[point].only_flows, 0);
    }
    prop_assert_eq!(found.clock.pieces.len(), 1, "{:?}", found.clock.steps);
    let piece = &found.clock.pieces[0];
    let offset = path.offset as f64 + piece.time.0 as f64 * path.ppm * 1e-6;
    prop_assert!(
        piece.offset.0.unwrap() <= offset + 2e3 && offset - 2e3 <= piece.offset.1.unwrap(),
        "{:?} {}",
        piece,
        offset
    );
    // 2 ms there and 1 ms back.
    let sum = found.clock.round_trip.unwrap();
    prop_assert!((sum - 3e6).abs() < 0.2e6, "{}", sum);
    let delay = &found.clock.delays;
    let client = if path.is_swapped { 1 } else { 0 };
    prop_assert!(delay[client].least.1.unwrap() + 1e4 >= 2e6);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn the_lost_packets_are_exactly_those_and_the_clocks_are_within_bounds(path in path()) {
        check(&path)?;
    }

    #[test]
    fn a_part_of_a_cut_segment_is_lost_exactly(path in path(), cut in 2u64..5) {
        check(&Path { cut, stamps: true, duplicate: 0, ..path })?;
    }

    #[test]
    fn duplicates_are_counted_and_reordering_is_no_loss(path in path()) {
        let path = Path { loss: 0, ids: true, ..path };
        let truth = capture(&path);
        let (found, losses) = compare(&truth.captures);
        prop_assert!(losses.0.iter().all(Vec::is_empty));
        let duplicated: u64 = found.ways.iter().map(|way| way.duplicated.packets).sum();
        prop_assert_eq!(duplicated, truth.duplicated);
    }
    #[test]
    fn transmissions_that_look_the_same_are_lost_one_by_one(path in path()) {
        let path = Path { stamps: true, ids: false, is_quick: true, duplicate: 0, ..path };
        let truth = capture(&path);
        let (found, losses) = compare(&truth.captures);
        for (point, capture) in truth.captures.iter().enumerate() {
            // No field says which of them was lost.
            let looks = |lost: &[(u64, u64)]| {
                let looks = lost.iter().map(|&(number, bytes)| {
                    let sight = capture[number as usize - 1];
                    (sight.key.source_port, sight.sequence, sight.stamps, bytes)
                });
                let mut looks: Vec<_> = looks.collect();
                looks.sort_unstable();
                looks
            };
            prop_assert_eq!(looks(&losses.0[point]), looks(&truth.lost[point]), "{:?}", path);
        }
        for way in found.ways {
            prop_assert_eq!((way.extra.packets, way.copies, way.duplicated.packets), (0, 0, 0));
        }
    }

    #[test]
    fn packets_that_a_capture_has_twice_are_no_losses(path in path()) {
        let path = Path { stamps: true, ids: false, is_twice: true, duplicate: 0, ..path };
        let truth = capture(&path);
        let (found, losses) = compare(&truth.captures);
        prop_assert_eq!(&losses.0, &truth.lost);
        let packets: usize = truth.captures.iter().map(Vec::len).sum();
        let passed: u64 = found.ways.iter().map(|way| way.pairs + way.lost.packets).sum();
        let copies: u64 = found.ways.iter().map(|way| way.copies).sum();
        prop_assert_eq!(copies, passed);
        prop_assert_eq!(3 * passed - truth.lost.concat().len() as u64, packets as u64);
    }
}
