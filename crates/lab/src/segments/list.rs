//! Lists of segments: two old ones, ours, and an array that only stores segments.

use trace::segments::Segments;

use super::FLOOR;

/// How a segment overlaps earlier ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overlap {
    /// Bytes of it that were seen before.
    pub octets: u32,
    /// Whether it has new bytes below bytes that were already seen.
    pub fills: bool,
}

/// The data that one end of a connection has sent.
pub trait SegmentList {
    /// Its name in tables.
    fn name(&self) -> &'static str;

    /// Inserts a segment of `length` bytes, at least one, at offset `first`, sent at `time_ns`.
    fn insert(&mut self, first: u64, length: u32, time_ns: i64) -> Overlap;

    /// Whether a segment that ends at offset `first` was seen: the look-up of tcptrace's IsRTO().
    fn ended_at(&self, first: u64) -> bool;
}

/// Where a walk over a list starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// At the lowest offset.
    Head,
    /// At the highest offset.
    Tail,
}

/// No node.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    first: u64,
    end: u64,
    time_ns: i64,
    /// Number of later segments that started within this one.
    again: u32,
    before: u32,
    after: u32,
}

/// A doubly linked list of segments, sorted by offset, without overlaps.
///
/// Its nodes are in one array in the order of their creation, so a step is cheaper here than over
/// nodes that are allocated one by one. As in tcptrace, a segment above all others is appended
/// without a walk.
#[derive(Clone, Debug)]
pub struct Linked {
    nodes: Vec<Node>,
    head: u32,
    tail: u32,
    insert_from: End,
    look_up_from: End,
}

impl Linked {
    /// An empty list that is walked from the given ends for insertions and for look-ups.
    #[must_use]
    pub const fn new(insert_from: End, look_up_from: End) -> Self {
        Self {
            nodes: Vec::new(),
            head: NONE,
            tail: NONE,
            insert_from,
            look_up_from,
        }
    }

    fn node(&self, at: u32) -> Option<&Node> {
        self.nodes.get(at as usize)
    }

    /// The lowest node that ends above `first`, or `NONE`.
    fn first_above(&self, first: u64) -> u32 {
        match self.insert_from {
            End::Head => {
                let mut at = self.head;
                while let Some(node) = self.node(at)
                    && node.end <= first
                {
                    at = node.after;
                }
                at
            }
            End::Tail => {
                let mut above = NONE;
                let mut at = self.tail;
                while let Some(node) = self.node(at)
                    && node.end > first
                {
                    above = at;
                    at = node.before;
                }
                above
            }
        }
    }

    /// Inserts a new node before the node `after`, or at the tail if that is `NONE`.
    fn link_before(&mut self, after: u32, first: u64, end: u64, time_ns: i64) {
        let new = self.nodes.len() as u32;
        let before = match self.nodes.get_mut(after as usize) {
            Some(node) => core::mem::replace(&mut node.before, new),
            None => core::mem::replace(&mut self.tail, new),
        };
        match self.nodes.get_mut(before as usize) {
            Some(node) => node.after = new,
            None => self.head = new,
        }
        self.nodes.push(Node {
            first,
            end,
            time_ns,
            again: 0,
            before,
            after,
        });
    }
}

impl SegmentList for Linked {
    fn name(&self) -> &'static str {
        match self.insert_from {
            End::Head => "from the head",
            End::Tail => "from the tail",
        }
    }

    fn insert(&mut self, first: u64, length: u32, time_ns: i64) -> Overlap {
        let end = first + u64::from(length);
        let mut found = Overlap::default();
        if self.node(self.tail).is_none_or(|node| node.end <= first) {
            self.link_before(NONE, first, end, time_ns);
            return found;
        }
        let mut from = first;
        let mut at = self.first_above(first);
        // The segment is cut where existing segments start and end.
        while let Some(node) = self.nodes.get_mut(at as usize)
            && from < end
        {
            let next = node.after;
            let (node_first, node_end) = (node.first, node.end);
            if from >= node_first && from == first {
                node.again += 1;
                node.time_ns = time_ns;
            }
            if from < node_first {
                self.link_before(at, from, end.min(node_first), time_ns);
                found.fills = true;
            }
            let seen_to = end.min(node_end);
            found.octets += seen_to.saturating_sub(from.max(node_first)) as u32;
            from = seen_to;
            at = next;
        }
        if from < end {
            self.link_before(NONE, from, end, time_ns);
        }
        found
    }

    fn ended_at(&self, first: u64) -> bool {
        let mut at = match self.look_up_from {
            End::Head => self.head,
            End::Tail => self.tail,
        };
        while let Some(node) = self.node(at) {
            if node.end == first {
                return true;
            }
            at = match self.look_up_from {
                End::Head => node.after,
                End::Tail => node.before,
            };
        }
        false
    }
}

/// The data structure of `headend trace`.
///
/// Its look-up answers whether the byte before was seen. That is equivalent as long as
/// retransmissions repeat whole segments.
#[derive(Clone, Debug, Default)]
pub struct Ours(Segments);

impl SegmentList for Ours {
    fn name(&self) -> &'static str {
        "ours"
    }

    fn insert(&mut self, first: u64, length: u32, time_ns: i64) -> Overlap {
        let found = self.0.insert(first, length, time_ns);
        Overlap {
            octets: found.overlap,
            fills: found.fills,
        }
    }

    fn ended_at(&self, first: u64) -> bool {
        first > 0 && self.0.has(first - 1, first)
    }
}

/// The floor: an array to which each segment is appended, without look-ups.
#[derive(Clone, Debug, Default)]
pub struct Array(Vec<(u64, u32, i64)>);

impl SegmentList for Array {
    fn name(&self) -> &'static str {
        FLOOR
    }

    fn insert(&mut self, first: u64, length: u32, time_ns: i64) -> Overlap {
        self.0.push((first, length, time_ns));
        Overlap::default()
    }

    fn ended_at(&self, first: u64) -> bool {
        self.0.last().is_some_and(|last| last.0 == first)
    }
}
