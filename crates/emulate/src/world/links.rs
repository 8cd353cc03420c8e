//! Links and the connections over them. Determines how a message travels and when it arrives.

use base::{Duration, Instant};
use bgp::ConnId;
use sim::Rng;

use super::World;
use super::post::{Lane, Parcel, Post, What};
use crate::topology::{Detection, Topology, Transport};

/// One end of a connection, stored at the connection's index. It is aligned, so that it never lies in two cache lines.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(super) struct End {
    /// The connection now stored at this index; messages for another one are ignored.
    pub(super) conn: ConnId,
    /// The router at the other end.
    pub(super) peer: u32,
    /// The connection at the other end, once it exists.
    pub(super) far: Option<ConnId>,
    /// Its link.
    pub(super) link: u32,
    pub(super) lane: Lane,
    /// Whether the other end is up.
    pub(super) is_far_up: bool,
}

const _: () = assert!(size_of::<End>() == 32);

/// State of one direction of a link that has jitter or a rate.
#[derive(Clone, Copy, Default)]
struct Pace {
    /// When the last byte sent will have left.
    left: Instant,
    /// When the last message sent will arrive.
    there: Instant,
}

/// The state of every link, and the neighbours of every router.
pub(super) struct Lines {
    lanes: Vec<Lane>,
    pub(super) is_up: Vec<bool>,
    /// Where each router's neighbours start in `near`.
    starts: Vec<u32>,
    /// Pairs of neighbour and link, sorted by router, then by neighbour.
    near: Vec<(u32, u32)>,
    /// Both directions of each link whose lane is [`Lane::SINGLE`]; empty if there is no such link.
    paces: Vec<[Pace; 2]>,
    rng: Rng,
}

impl Lines {
    pub(super) fn new(topology: &Topology, post: &mut Post, seed: u64) -> Self {
        let lanes: Vec<Lane> = topology
            .link_settings
            .iter()
            .map(|settings| match settings {
                s if s.transport == Transport::Tcp => Lane::LOST,
                s if s.jitter > Duration::ZERO || s.rate_octets_s > 0 => Lane::SINGLE,
                s => post.lane(s.delay),
            })
            .collect();
        let singles = lanes.contains(&Lane::SINGLE);
        let (starts, near) = neighbours(topology);
        Self {
            lanes,
            is_up: vec![true; topology.links.len()],
            starts,
            near,
            paces: if singles {
                vec![[Pace::default(); 2]; topology.links.len()]
            } else {
                Vec::new()
            },
            rng: Rng::stream(seed, &["jitter"]),
        }
    }

    /// The link between two routers.
    pub(super) fn between(&self, router: u32, peer: u32) -> Option<u32> {
        let near = self.near(router);
        let at = near.binary_search_by_key(&peer, |(peer, _)| *peer).ok()?;
        Some(near[at].1)
    }

    /// The neighbours of a router, each with the link to it.
    pub(super) fn near(&self, router: u32) -> &[(u32, u32)] {
        let start = self.starts[router as usize] as usize;
        let end = self.starts[router as usize + 1] as usize;
        &self.near[start..end]
    }

    /// The lane of a link that is up.
    pub(super) fn lane(&self, topology: &Topology, link: u32) -> Lane {
        self.lanes[usize::from(topology.links[link as usize].settings)]
    }
}

/// The neighbours of each router, sorted by router and then by neighbour.
fn neighbours(topology: &Topology) -> (Vec<u32>, Vec<(u32, u32)>) {
    let mut starts = vec![0_u32; topology.routers.len() + 1];
    for link in &topology.links {
        starts[link.a as usize + 1] += 1;
        starts[link.b as usize + 1] += 1;
    }
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let mut next = starts.clone();
    let mut near = vec![(0, 0); 2 * topology.links.len()];
    for (link, number) in topology.links.iter().zip(0..) {
        for (router, peer) in [(link.a, link.b), (link.b, link.a)] {
            let at = &mut next[router as usize];
            near[*at as usize] = (peer, number);
            *at += 1;
        }
    }
    for pair in starts.windows(2) {
        near[pair[0] as usize..pair[1] as usize].sort_unstable();
    }
    (starts, near)
}

impl World {
    /// The end of a connection, if it is still known here.
    #[inline]
    pub(super) fn end(&self, router: u32, conn: ConnId) -> Option<&End> {
        let end = self.nodes[router as usize]
            .ends
            .get(conn.index() as usize)?;
        (end.conn == conn).then_some(end)
    }

    pub(super) fn end_mut(&mut self, router: u32, conn: ConnId) -> Option<&mut End> {
        let ends = &mut self.nodes[router as usize].ends;
        let end = ends.get_mut(conn.index() as usize)?;
        (end.conn == conn).then_some(end)
    }

    /// Stores an end at the index of its connection.
    pub(super) fn place(&mut self, router: u32, end: End) {
        let ends = &mut self.nodes[router as usize].ends;
        let index = end.conn.index() as usize;
        if ends.len() <= index {
            if ends.capacity() <= index {
                ends.reserve_exact((index / 4).max(2));
            }
            // A gap is always filled before it is read; until then it holds a copy of this end.
            ends.resize(
                index + 1,
                End {
                    lane: Lane::LOST,
                    far: None,
                    ..end
                },
            );
        }
        ends[index] = end;
    }

    /// Sends a KEEPALIVE.
    #[inline]
    pub(super) fn send_keepalive(&mut self, router: u32, conn: ConnId) {
        let Some(&end) = self.end(router, conn) else {
            return;
        };
        let Some(far) = end.far else { return };
        let what = if end.is_far_up {
            What::Keepalive
        } else {
            What::First
        };
        let parcel = Parcel {
            router: end.peer,
            what,
            conn: far,
        };
        if end.lane == Lane::SINGLE {
            return self.send_single(router, end.link, parcel, 19);
        }
        self.post.send(end.lane, self.now, parcel);
    }

    /// Sends something that takes `octets` bytes on the link.
    pub(super) fn send(&mut self, router: u32, conn: ConnId, what: What, octets: usize) {
        let end = self.end(router, conn).copied();
        let parcel = |end: End| {
            Some(Parcel {
                router: end.peer,
                what,
                conn: end.far?,
            })
        };
        match end.and_then(|end| Some((end, parcel(end)?))) {
            Some((end, parcel)) if end.lane == Lane::SINGLE => {
                self.send_single(router, end.link, parcel, octets);
            }
            Some((end, parcel)) => self.post.send(end.lane, self.now, parcel),
            None => self.post.discard(what),
        }
    }

    /// Sends over a link without a connection, or where both directions are the same.
    pub(super) fn send_over(&mut self, link: u32, lane: Lane, from: u32, parcel: Parcel) {
        if lane == Lane::SINGLE {
            return self.send_single(from, link, parcel, 40);
        }
        self.post.send(lane, self.now, parcel);
    }

    /// Sends over a link with jitter or a rate. The message arrives after everything sent before
    /// it.
    fn send_single(&mut self, from: u32, link: u32, parcel: Parcel, octets: usize) {
        let topology = &self.scenario.topology;
        let ends = topology.links[link as usize];
        let settings = topology.settings_of(&ends);
        let is_a = ends.a == from;
        let pace = &mut self.lines.paces[link as usize][usize::from(is_a)];
        let mut leaves = self.now;
        if settings.rate_octets_s > 0 {
            let span_ns = octets as u128 * 1_000_000_000 / u128::from(settings.rate_octets_s);
            leaves = leaves.max(pace.left) + Duration::from_nanos(span_ns as u64);
            pace.left = leaves;
        }
        let there = leaves + settings.delay + self.lines.rng.up_to(settings.jitter);
        pace.there = there.max(pace.there);
        self.post.send_at(pace.there, parcel);
    }

    /// An end is up. From now on a KEEPALIVE to it needs no reply.
    pub(super) fn came_up(&mut self, router: u32, conn: ConnId) {
        let Some(&End { peer, far, .. }) = self.end(router, conn) else {
            return;
        };
        if let Some(end) = far.and_then(|far| self.end_mut(peer, far)) {
            end.is_far_up = true;
        }
    }

    /// A router closes a connection. The other end learns of it after everything sent before.
    pub(super) fn hang_up(&mut self, router: u32, conn: ConnId) {
        self.send(router, conn, What::Closed, 40);
        if let Some(end) = self.end_mut(router, conn) {
            end.far = None;
            end.lane = Lane::LOST;
        }
    }

    /// Cuts every connection over a link; the ends notice by its `detection`.
    pub(super) fn cut(&mut self, link: u32, detection: Detection) {
        let ends = self.scenario.topology.links[link as usize];
        for router in [ends.a, ends.b] {
            let node = &mut self.nodes[router as usize];
            let mut gone = Vec::new();
            let over = |end: &&mut End| end.link == link && end.lane != Lane::LOST;
            for end in node.ends.iter_mut().filter(over) {
                end.lane = Lane::LOST;
                if detection == Detection::AtOnce {
                    end.far = None;
                    gone.push(end.conn);
                }
            }
            if let Some(speaker) = &mut node.speaker {
                for conn in gone {
                    speaker.closed(conn, self.now);
                }
                self.wake(router);
            }
        }
    }
}
