//! Drives a machine without I/O in virtual time: a request that is retransmitted until it is answered.
//!
//! `cargo run -p headend-base --example retry`
#![forbid(unsafe_code)]

use base::{Duration, Instant};

/// A request, its deadline and the number of times it was sent.
struct Request {
    deadline: Option<Instant>,
    sent: u32,
}

impl Request {
    /// Sends when the deadline has passed, and doubles the wait.
    fn handle_timeout(&mut self, now: Instant) -> bool {
        let due = self.deadline.is_some_and(|deadline| deadline <= now);
        if due {
            self.deadline = Some(now + Duration::from_secs(1 << self.sent));
            self.sent += 1;
        }
        due
    }
}

fn main() {
    let mut request = Request {
        deadline: Some(Instant::ZERO),
        sent: 0,
    };
    let answer_at = Instant::ZERO + Duration::from_secs(10);
    // The owner jumps to the next deadline; with a real clock, it would sleep until then.
    while let Some(now) = request.deadline.filter(|&deadline| deadline < answer_at) {
        if request.handle_timeout(now) {
            println!("{now:?}: sent, attempt {}", request.sent);
        }
    }
    request.deadline = None;
    println!("{answer_at:?}: answered after {} attempts", request.sent);
    assert_eq!(request.sent, 4);
}
