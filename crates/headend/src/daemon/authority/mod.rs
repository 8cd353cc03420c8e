//! Who may come in: the users file.

use aaa::Users;
use aaa::users::{Proof, Verdict};
use base::Instant;
use edge::{Admission, Edge, Question};

/// Whoever decides on subscribers.
pub(super) struct Authority {
    users: Option<Users>,
}

impl Authority {
    /// The users of a file; without one everybody may come in.
    pub(super) fn new(users: Option<Users>) -> Self {
        Self { users }
    }

    /// Answers who asks to come in. Returns how many did.
    pub(super) fn answer(&mut self, edge: &mut Edge, now: Instant) -> u64 {
        let mut count = 0;
        while let Some(question) = edge.poll_question() {
            self.decide(&question, edge, now);
            count += 1;
        }
        count
    }

    fn decide(&self, question: &Question, edge: &mut Edge, now: Instant) {
        let subscriber = question.subscriber;
        let Some(users) = &self.users else {
            edge.admit(subscriber, Admission::default(), b"", now);
            return;
        };
        let claim = &question.claim;
        let proof = match &claim.proof {
            ppp::Proof::None => Proof::None,
            ppp::Proof::Pap { password, .. } => Proof::Pap(password.reveal()),
            ppp::Proof::Chap {
                identifier,
                challenge,
                response,
            } => Proof::Chap {
                identifier: *identifier,
                challenge,
                response,
            },
        };
        match users.authenticate(&claim.name, &proof) {
            Verdict::Accept(grant) => {
                let admission = Admission {
                    profile: grant.profile,
                    sticky: grant.sticky,
                    sessions: grant.sessions.map(|most| u32::from(most.get())),
                };
                edge.admit(subscriber, admission, b"", now);
            }
            Verdict::Reject(why) => {
                let name = String::from_utf8_lossy(&claim.name);
                tracing::debug!(user = %name, %why, "not let in");
                edge.refuse(subscriber, &why.to_string(), b"authentication failed", now);
            }
        }
    }
}
