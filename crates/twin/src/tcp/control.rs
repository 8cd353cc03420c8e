//! Congestion control: the window as a function of ACKs and losses.

use super::bbr::Bbr;
use super::cubic::Cubic;

/// The algorithms that a twin can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// RFC 5681.
    Reno,
    /// RFC 9438, with HyStart.
    Cubic,
    /// BBR, version 1.
    Bbr,
}

impl Algorithm {
    /// Its name, as in Linux.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Reno => "reno",
            Algorithm::Cubic => "cubic",
            Algorithm::Bbr => "bbr",
        }
    }
}

/// What an ACK tells congestion control.
#[derive(Debug, Clone, Copy)]
pub struct Delivery {
    /// When it came.
    pub now: u64,
    /// Segments that it newly acknowledges, selectively or not.
    pub segments: u64,
    /// The round trip that it measures.
    pub round_trip: Option<u64>,
    /// Segments in flight, before more are sent.
    pub in_flight: u64,
    /// It acknowledges the first segment of a round: one sent after the last round's ACK came.
    pub is_round: bool,
    /// Segments delivered since the newest acknowledged segment was sent, and the time this took.
    pub rate: Option<(u64, u64)>,
}

/// The state of an algorithm. Windows are in segments.
#[derive(Debug, Clone)]
pub struct Control {
    /// The congestion window.
    pub window: f64,
    /// The slow-start threshold.
    pub threshold: f64,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Reno,
    Cubic(Cubic),
    Bbr(Box<Bbr>),
}

impl Control {
    /// An algorithm with its initial window.
    #[must_use]
    pub fn new(algorithm: Algorithm, initial: u32) -> Control {
        Control {
            window: f64::from(initial.max(1)),
            threshold: f64::INFINITY,
            kind: match algorithm {
                Algorithm::Reno => Kind::Reno,
                Algorithm::Cubic => Kind::Cubic(Cubic::default()),
                Algorithm::Bbr => Kind::Bbr(Box::new(Bbr::new(initial))),
            },
        }
    }

    /// The window is below the threshold.
    #[must_use]
    pub fn is_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// Losses reduce its window, and recovery is proportional (RFC 6937).
    #[must_use]
    pub fn is_loss_based(&self) -> bool {
        !matches!(self.kind, Kind::Bbr(_))
    }

    /// An ACK outside of a recovery, or any ACK for BBR. `is_limited`: the window limited the sender.
    pub fn delivered(&mut self, delivery: &Delivery, is_limited: bool) {
        if let Kind::Bbr(bbr) = &mut self.kind {
            self.window = bbr.delivered(delivery);
            return;
        }
        if let Kind::Cubic(cubic) = &mut self.kind
            && cubic.leaves_slow_start(delivery, self.window, self.threshold)
        {
            self.threshold = self.window;
        }
        if !is_limited {
            return;
        }
        let mut segments = delivery.segments as f64;
        if self.is_slow_start() {
            let grown = (self.window + segments).min(self.threshold);
            segments -= grown - self.window;
            self.window = grown;
        }
        if segments > 0.0 {
            self.window += match &mut self.kind {
                Kind::Cubic(cubic) => cubic.growth(delivery.now, self.window, segments),
                Kind::Reno | Kind::Bbr(_) => segments / self.window,
            };
        }
    }

    /// A recovery starts: sets the threshold (RFC 5681 3.1, RFC 9438 4.6).
    pub fn reduce(&mut self) {
        match &mut self.kind {
            Kind::Reno => self.threshold = (self.window / 2.0).max(2.0),
            Kind::Cubic(cubic) => self.threshold = cubic.reduce(self.window),
            Kind::Bbr(_) => {}
        }
    }

    /// A time-out: one segment (RFC 5681 3.1).
    pub fn time_out(&mut self) {
        self.reduce();
        if let Kind::Cubic(cubic) = &mut self.kind {
            *cubic = Cubic::default();
        }
        if self.is_loss_based() {
            self.window = 1.0;
        }
    }

    /// No data was in flight for a time-out: the window restarts (RFC 5681 4.1).
    pub fn restart(&mut self, initial: u32) {
        if self.is_loss_based() {
            self.threshold = self.threshold.max(0.75 * self.window);
            self.window = self.window.min(f64::from(initial));
        }
    }

    /// Nanoseconds between segments; `None` without pacing.
    #[must_use]
    pub fn interval(&self) -> Option<u64> {
        match &self.kind {
            Kind::Bbr(bbr) => bbr.interval(),
            Kind::Reno | Kind::Cubic(_) => None,
        }
    }
}
