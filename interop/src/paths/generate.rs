//! The paths of a seed.

use super::traffic::{Sends, Takes};

/// What slows a path's transfer down, by construction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Label {
    Application,
    Receiver,
    Loss,
    Timeout,
    Reordering,
    Queue,
    ShallowBuffer,
    Policer,
    Pacing,
    Bbr,
    SlowStart,
    Tls,
}

impl Label {
    pub(crate) const ALL: [Label; 12] = [
        Self::Application,
        Self::Receiver,
        Self::Loss,
        Self::Timeout,
        Self::Reordering,
        Self::Queue,
        Self::ShallowBuffer,
        Self::Policer,
        Self::Pacing,
        Self::Bbr,
        Self::SlowStart,
        Self::Tls,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Receiver => "receiver's window",
            Self::Loss => "random loss",
            Self::Timeout => "time-outs",
            Self::Reordering => "reordering",
            Self::Queue => "standing queue",
            Self::ShallowBuffer => "shallow buffer",
            Self::Policer => "policer",
            Self::Pacing => "pacing",
            Self::Bbr => "BBR, bottleneck",
            Self::SlowStart => "slow start",
            Self::Tls => "TLS start",
        }
    }

    /// The causes that are right. A shallow buffer is a queue that overflows, and BBR paces at the bottleneck's rate, so
    /// that for these two causes are right.
    pub(crate) const fn right(self) -> &'static [&'static str] {
        match self {
            Self::Application => &["application", "idle"],
            Self::Receiver => &["receiver_window"],
            Self::Loss => &["fast_retransmit", "timeout", "tail_loss", "after_loss"],
            Self::Timeout => &["timeout", "tail_loss"],
            Self::Reordering => &["spurious"],
            Self::Queue => &["queue"],
            Self::ShallowBuffer => &["fast_retransmit", "after_loss", "queue"],
            Self::Policer => &["policer"],
            Self::Pacing => &["pacing"],
            Self::Bbr => &["pacing", "queue"],
            Self::SlowStart => &["slow_start"],
            Self::Tls => &["tls"],
        }
    }
}

/// The queue of the bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queue {
    Fifo { bytes: u64 },
    FqCodel,
}

/// A path and the transfer over it.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    pub(crate) name: String,
    pub(crate) label: Label,
    pub(crate) rate_kbit: u64,
    /// Round trips of the links near the sender and far from it.
    pub(crate) near_us: u64,
    pub(crate) far_us: u64,
    pub(crate) queue: Queue,
    /// Bytes that the bottleneck's token bucket holds.
    pub(crate) burst: u64,
    /// netem's other arguments, near the sender and far from it.
    pub(crate) near_faults: String,
    pub(crate) far_faults: String,
    /// Start and length of a time in which the far link loses everything.
    pub(crate) outage_ms: Option<(u64, u64)>,
    /// Rate and burst.
    pub(crate) police: Option<(u64, u64)>,
    /// The far link delays some segments by so much more, and the sender takes three duplicate ACKs for a loss.
    pub(crate) late_us: Option<u64>,
    /// The faults start this much later than the transfer.
    pub(crate) faults_after_ms: u64,
    /// The sender's `SO_MAX_PACING_RATE`.
    pub(crate) pace_kbit: Option<u64>,
    pub(crate) congestion: &'static str,
    /// The receiver's buffer; 0 is the kernel's own.
    pub(crate) receive_buffer: u64,
    pub(crate) sends: Sends,
    pub(crate) takes: Takes,
    /// The sender's kernel hands segments over the MTU to its device.
    pub(crate) offloads: bool,
}

/// `SplitMix64` (Steele, Lea and Flood).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// As likely between 1 and 2 as between 10 and 20.
    fn scale(&mut self, low: u64, high: u64) -> u64 {
        let part = self.between(0, 1_000) as f64 / 1_000.0;
        (low as f64 * (high as f64 / low as f64).powf(part)).round() as u64
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.next()).unwrap_or(usize::MAX) % of.len()]
    }
}

/// Bytes of a segment's data.
const SEGMENT: u64 = 1_448;

/// Data of a transfer, at most: a guest needs about a second for 3,000 packets.
const BYTES_MAX: u64 = 6_000_000;

/// Sets what a kind of path is like.
type Set = fn(&mut Dice, &mut Path);

/// Kinds of paths, several for some labels.
const KINDS: [(&str, Set); 20] = [
    ("writes", writes),
    ("bursts", bursts),
    ("answers", answers),
    ("pauses", pauses),
    ("small-buffer", small_buffer),
    ("slow-reader", slow_reader),
    ("loss-reno", |dice, path| loss(dice, path, "reno")),
    ("loss-cubic", |dice, path| loss(dice, path, "cubic")),
    ("tails", tails),
    ("outage", outage),
    ("reordering", reordering),
    ("deep-reno", |dice, path| deep(dice, path, "reno")),
    ("deep-cubic", |dice, path| deep(dice, path, "cubic")),
    ("shaper", shaper),
    ("shallow", shallow),
    ("policer", policer),
    ("fq-codel", fq_codel),
    ("paced", paced),
    ("bbr", bbr),
    ("slow-start", slow_start),
];

/// `rounds` paths of each kind, and of TLS.
pub(crate) fn of_seed(seed: u64, rounds: u64) -> Vec<Path> {
    let mut paths = Vec::new();
    for round in 0..rounds {
        for (kind, shape) in KINDS
            .iter()
            .chain([&("tls", tls as fn(&mut Dice, &mut Path))])
        {
            let number = paths.len() as u64;
            let mut dice = Dice(seed.wrapping_mul(1_000_003).wrapping_add(number));
            let mut path = plain(&mut dice, format!("{seed}-{round}-{kind}"));
            shape(&mut dice, &mut path);
            paths.push(path);
        }
    }
    paths
}

/// Data of a fast path, at most: QEMU's guest needs tens of seconds for a megabyte.
const FAST_BYTES_MAX: u64 = 400_000;

/// A few short paths, for a test of each run.
pub(crate) fn fast() -> Vec<Path> {
    let wanted = ["writes", "small-buffer", "deep-cubic", "outage"];
    let is_wanted = |path: &Path| {
        wanted
            .iter()
            .any(|kind| path.name.ends_with(&format!("-{kind}")))
    };
    let mut paths: Vec<Path> = of_seed(7, 1).into_iter().filter(is_wanted).collect();
    for path in &mut paths {
        if let Sends::Bulk { bytes } = &mut path.sends {
            *bytes = (*bytes).min(FAST_BYTES_MAX);
        }
        if path.outage_ms.is_some() {
            // Before the transfer has ended.
            path.rate_kbit = 3_000;
        } else if let Queue::Fifo { bytes } = &mut path.queue {
            *bytes = (*bytes).max(200_000);
        }
    }
    paths
}

/// A fast path of 5 to 200 ms, with a buffer that does not overflow.
fn plain(dice: &mut Dice, name: String) -> Path {
    let mut path = Path {
        name,
        label: Label::Application,
        rate_kbit: dice.scale(20_000, 200_000),
        near_us: 0,
        far_us: 0,
        queue: Queue::Fifo { bytes: 8_000_000 },
        burst: 3_200,
        near_faults: String::new(),
        far_faults: String::new(),
        outage_ms: None,
        police: None,
        late_us: None,
        faults_after_ms: 0,
        pace_kbit: None,
        congestion: dice.one(&["reno", "cubic"]),
        receive_buffer: 0,
        sends: Sends::Bulk { bytes: BYTES_MAX },
        takes: Takes::All,
        offloads: dice.one(&[true, false, false]),
    };
    path.round_trip(dice, 5, 150);
    path
}

impl Path {
    /// A round trip between the bounds in milliseconds, a fifth to four fifths of it near the sender.
    fn round_trip(&mut self, dice: &mut Dice, low_ms: u64, high_ms: u64) {
        let whole = dice.scale(low_ms * 1_000, high_ms * 1_000);
        self.near_us = whole * dice.between(20, 80) / 100;
        self.far_us = whole - self.near_us;
    }

    fn rtt_us(&self) -> u64 {
        self.near_us + self.far_us
    }

    /// Bytes that the path holds without a queue.
    fn holds(&self) -> u64 {
        (self.rate_kbit * self.rtt_us() / 8_000).max(2 * SEGMENT)
    }

    /// All that the bottleneck lets pass in `ms`.
    fn bulk(&mut self, ms: u64) {
        let bytes = (self.rate_kbit * ms / 8).min(BYTES_MAX);
        self.sends = Sends::Bulk { bytes };
    }
}

fn writes(dice: &mut Dice, path: &mut Path) {
    let every_ms = dice.scale(20, 400);
    let bytes = dice.scale(200, 9 * SEGMENT);
    let count = 5_000 / every_ms;
    path.sends = Sends::Writes {
        bytes,
        every_ms,
        count,
    };
}

fn bursts(dice: &mut Dice, path: &mut Path) {
    path.round_trip(dice, 4, 30);
    let bytes = dice.scale(20_000, 80_000);
    let every_ms = dice.between(500, 1_500);
    path.sends = Sends::Writes {
        bytes,
        every_ms,
        count: 8,
    };
}

fn answers(dice: &mut Dice, path: &mut Path) {
    path.round_trip(dice, 4, 60);
    let (bytes, think_ms) = (dice.scale(300, 10_000), dice.between(60, 400));
    path.sends = Sends::Answers { bytes, think_ms };
    path.takes = Takes::Asks {
        count: 20,
        pause_ms: 0,
        bytes,
    };
}

fn pauses(dice: &mut Dice, path: &mut Path) {
    path.round_trip(dice, 4, 80);
    let (bytes, pause_ms) = (dice.scale(1_000, 40_000), dice.between(1_500, 4_000));
    path.sends = Sends::Answers { bytes, think_ms: 5 };
    path.takes = Takes::Asks {
        count: 5,
        pause_ms,
        bytes,
    };
}

fn small_buffer(dice: &mut Dice, path: &mut Path) {
    path.label = Label::Receiver;
    path.round_trip(dice, 20, 200);
    path.rate_kbit = dice.scale(60_000, 200_000);
    path.receive_buffer = dice.scale(8_000, 64_000);
    // About half of the buffer each round trip, for 5 seconds.
    let bytes = path.receive_buffer / 2 * 5_000_000 / path.rtt_us();
    path.sends = Sends::Bulk {
        bytes: bytes.clamp(100_000, BYTES_MAX),
    };
}

fn slow_reader(dice: &mut Dice, path: &mut Path) {
    path.label = Label::Receiver;
    path.receive_buffer = dice.scale(16_000, 128_000);
    let (bytes, every_ms) = (dice.scale(2_000, 32_000), dice.between(20, 200));
    path.takes = Takes::Slowly { bytes, every_ms };
    let whole = bytes * 6_000 / every_ms;
    path.sends = Sends::Bulk {
        bytes: whole.max(path.receive_buffer * 4),
    };
}

fn loss(dice: &mut Dice, path: &mut Path, congestion: &'static str) {
    path.label = Label::Loss;
    path.congestion = congestion;
    path.offloads = false;
    path.round_trip(dice, 20, 120);
    let per_mille = dice.scale(3, 30);
    // Mathis et al. 1997.
    let segments = 1.22 / (per_mille as f64 / 1_000.0).sqrt();
    let rate_kbit = (segments * SEGMENT as f64 * 8_000.0 / path.rtt_us() as f64) as u64;
    path.rate_kbit = (rate_kbit * 5).clamp(5_000, 200_000);
    let percent = per_mille as f64 / 10.0;
    let faults = format!("loss {percent}%");
    match dice.one(&[true, false]) {
        true => path.near_faults = faults,
        false => path.far_faults = faults,
    }
    path.sends = Sends::Bulk {
        bytes: (rate_kbit * 8_000 / 8).clamp(400_000, BYTES_MAX),
    };
}

fn tails(dice: &mut Dice, path: &mut Path) {
    path.label = Label::Timeout;
    path.offloads = false;
    path.round_trip(dice, 4, 25);
    let percent = dice.between(10, 20);
    let bytes = dice.between(200, 3 * SEGMENT);
    match dice.one(&[true, false]) {
        true => path.near_faults = format!("loss {percent}%"),
        false => path.far_faults = format!("loss {percent}%"),
    }
    path.sends = Sends::Answers { bytes, think_ms: 0 };
    path.takes = Takes::Asks {
        count: 60,
        pause_ms: 0,
        bytes,
    };
}

fn outage(dice: &mut Dice, path: &mut Path) {
    path.label = Label::Timeout;
    path.rate_kbit = dice.scale(4_000, 20_000);
    path.round_trip(dice, 10, 100);
    path.queue = Queue::Fifo {
        bytes: path.holds().max(40_000),
    };
    path.outage_ms = Some((dice.between(400, 800), dice.between(1_200, 3_000)));
    path.bulk(1_200);
}

fn reordering(dice: &mut Dice, path: &mut Path) {
    path.label = Label::Reordering;
    path.offloads = false;
    path.rate_kbit = dice.scale(100_000, 200_000);
    path.round_trip(dice, 30, 100);
    path.late_us = Some(dice.between(4_000, 15_000));
    path.far_faults = format!("reorder {}%", 100 - dice.between(1, 4));
    path.sends = Sends::Bulk {
        bytes: dice.scale(2_000_000, 5_000_000),
    };
}

fn deep(dice: &mut Dice, path: &mut Path, congestion: &'static str) {
    path.label = Label::Queue;
    path.congestion = congestion;
    path.rate_kbit = dice.scale(1_000, 30_000);
    path.round_trip(dice, 4, 100);
    let bytes = (path.holds() * dice.between(3, 8)).max(60_000);
    path.queue = Queue::Fifo { bytes };
    path.bulk(10_000);
}

fn shaper(dice: &mut Dice, path: &mut Path) {
    deep(dice, path, "cubic");
    path.burst = dice.scale(20_000, 200_000);
}

fn shallow(dice: &mut Dice, path: &mut Path) {
    path.label = Label::ShallowBuffer;
    path.rate_kbit = dice.scale(5_000, 20_000);
    path.round_trip(dice, 30, 150);
    let bytes = (path.holds() * dice.between(8, 35) / 100).max(4 * SEGMENT);
    path.queue = Queue::Fifo { bytes };
    path.bulk(8_000);
}

fn policer(dice: &mut Dice, path: &mut Path) {
    path.label = Label::Policer;
    path.rate_kbit = 200_000;
    path.offloads = false;
    path.round_trip(dice, 5, 80);
    let rate_kbit = dice.scale(2_000, 20_000);
    path.police = Some((rate_kbit, dice.scale(16_000, 100_000)));
    path.sends = Sends::Bulk {
        bytes: (rate_kbit * 8_000 / 8).min(BYTES_MAX),
    };
}

fn fq_codel(dice: &mut Dice, path: &mut Path) {
    path.label = Label::ShallowBuffer;
    path.rate_kbit = dice.scale(2_000, 20_000);
    path.round_trip(dice, 10, 80);
    path.queue = Queue::FqCodel;
    path.bulk(8_000);
}

fn paced(dice: &mut Dice, path: &mut Path) {
    path.label = Label::Pacing;
    path.rate_kbit = dice.scale(50_000, 200_000);
    let pace_kbit = dice.scale(1_000, 12_000);
    path.pace_kbit = Some(pace_kbit);
    path.sends = Sends::Bulk {
        bytes: (pace_kbit * 6_000 / 8).min(BYTES_MAX),
    };
}

fn bbr(dice: &mut Dice, path: &mut Path) {
    path.label = Label::Bbr;
    path.congestion = "bbr";
    path.rate_kbit = dice.scale(2_000, 30_000);
    path.round_trip(dice, 10, 100);
    let bytes = (path.holds() * dice.between(2, 8)).max(30_000);
    path.queue = Queue::Fifo { bytes };
    path.bulk(8_000);
}

fn slow_start(dice: &mut Dice, path: &mut Path) {
    path.label = Label::SlowStart;
    path.rate_kbit = dice.scale(80_000, 200_000);
    path.round_trip(dice, 80, 200);
    path.sends = Sends::Bulk {
        bytes: dice.scale(80_000, 500_000),
    };
}

fn tls(dice: &mut Dice, path: &mut Path) {
    path.label = Label::Tls;
    path.round_trip(dice, 40, 200);
    path.sends = Sends::Bulk {
        bytes: dice.scale(500, 9_000),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_has_its_paths_and_another_has_others() {
        let names = |seed| -> Vec<String> {
            let paths = of_seed(seed, 2);
            paths.iter().map(|path| format!("{path:?}")).collect()
        };
        assert_eq!(names(1), names(1));
        assert!(names(1).iter().zip(&names(2)).all(|(one, two)| one != two));
    }

    #[test]
    fn each_label_has_a_path() {
        let paths = of_seed(1, 1);
        for label in Label::ALL {
            assert!(
                paths.iter().any(|path| path.label == label),
                "{}",
                label.name()
            );
        }
    }
}
