//! The simulated authority that answers the edge's questions: promptly, slowly or never.

use std::collections::BTreeMap;

use aaa::{Address, Prefix, Profile, Queue};
use base::{Duration, Instant};
use edge::{Admission, Edge, Question, SubscriberKey};
use ppp::Proof;
use sim::Rng;

/// The password of every user.
pub(crate) const SECRET: &[u8] = b"sesame";

/// How the authority answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mood {
    /// Longest time until an answer.
    pub(crate) delay: Duration,
    /// Probability that there is no answer.
    pub(crate) silent: f64,
}

impl Mood {
    pub(crate) const PROMPT: Self = Self {
        delay: Duration::ZERO,
        silent: 0.0,
    };

    /// Sometimes longer than a peer waits.
    pub(crate) const BAD: Self = Self {
        delay: Duration::from_secs(40),
        silent: 0.1,
    };
}

struct Answer {
    subscriber: SubscriberKey,
    name: Box<[u8]>,
    right: bool,
}

/// Answers questions, each after its delay.
pub(crate) struct Authority {
    rng: Rng,
    mood: Mood,
    answers: BTreeMap<(Instant, u64), Answer>,
    count: u64,
}

impl Authority {
    pub(crate) fn new(rng: Rng, mood: Mood) -> Self {
        Self {
            rng,
            mood,
            answers: BTreeMap::new(),
            count: 0,
        }
    }

    pub(crate) fn take(&mut self, question: Question, now: Instant) {
        let right = is_right(&question);
        if self.rng.chance(self.mood.silent) {
            return;
        }
        // Mostly short.
        let part = self.rng.unit().powi(4);
        let delay = self.mood.delay.as_nanos() as f64 * part;
        self.count += 1;
        let at = now + Duration::from_nanos(delay as u64);
        let answer = Answer {
            subscriber: question.subscriber,
            name: question.claim.name,
            right,
        };
        self.answers.insert((at, self.count), answer);
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.answers.keys().next().map(|&(at, _)| at)
    }

    pub(crate) fn answer(&mut self, edge: &mut Edge, now: Instant) {
        while let Some(entry) = self.answers.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let answer = entry.remove();
            if answer.right {
                let admission = admission(&answer.name);
                edge.admit(answer.subscriber, admission, b"welcome", now);
            } else {
                edge.refuse(
                    answer.subscriber,
                    (edge::Refusal::Rejected, "a wrong secret"),
                    b"no",
                    now,
                );
            }
        }
    }
}

fn is_right(question: &Question) -> bool {
    match &question.claim.proof {
        Proof::None => true,
        Proof::Pap { password, .. } => **password.reveal() == *SECRET,
        Proof::Chap {
            identifier,
            challenge,
            response,
        } => *response == wire::ppp::chap::md5_response(*identifier, SECRET, challenge),
        Proof::MsChapV2 { .. } | Proof::Eap { .. } => false,
    }
}

/// Less than the packets of a storm need.
const SHAPE: hqos::Shape = hqos::Shape {
    rates: hqos::spec::Rates {
        down: 1_000,
        up: 1_000,
    },
    template: hqos::spec::TemplateId(0),
    node: None,
};

/// The profile of a user, chosen by the number at the end of its name.
pub(crate) fn admission(name: &[u8]) -> Admission {
    let number = core::str::from_utf8(name)
        .ok()
        .and_then(|name| name.strip_prefix("user"))
        .and_then(|number| number.parse::<u8>().ok())
        .unwrap_or(0);
    let mut profile = Profile::default();
    match number % 16 {
        // An address that another user has too.
        1 | 2 => profile.address = Address::Fixed([10, 0, 0, 2].into()),
        // An address outside every pool.
        3 => profile.address = Address::Fixed([172, 16, 0, number].into()),
        // Networks that another user has too.
        4 | 5 => {
            profile.routes = vec![
                network([10, 77, 0, 0], 16),
                network([10, 78, number, 0], 24),
            ]
        }
        6 => profile.session_timeout = Some(Duration::from_secs(30)),
        7 => profile.idle_timeout = Some(Duration::from_secs(20)),
        8 => profile.interim_interval = Some(Duration::from_secs(10)),
        9 => profile.name = Some("another".into()),
        10 => profile.filter = Some("none of this name".into()),
        11 => profile.pool = Some("none of this name".into()),
        // Prefixes that another user has too, and one of a user's own.
        0 | 14 => {
            profile.ipv6 = Some(Box::new(aaa::Ipv6 {
                prefix: Some(crate::v6::prefix("2001:db8:1:2::/64")),
                delegated: Some(crate::v6::prefix("2001:db8:9::/48")),
                ..aaa::Ipv6::default()
            }));
        }
        12 => profile.class = vec![b"a class"[..].into()],
        15 => {
            profile.queue = Queue {
                rates_bps: [Some(1_000_000), Some(500_000)],
                ..Queue::default().with_template(Some("none of this name"))
            };
        }
        _ => {}
    }
    Admission {
        profile,
        sticky: number.is_multiple_of(2),
        is_remote: number.is_multiple_of(3),
        sessions: (number % 16 == 13).then_some(1),
        left_out: Vec::new(),
        shape: (number % 16 == 14).then_some(SHAPE),
    }
}

fn network(address: [u8; 4], length: u8) -> Prefix {
    Prefix::new(address.into(), length).expect("no bits behind its length")
}
