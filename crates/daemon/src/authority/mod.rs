//! Decides which subscribers are accepted, and keeps their accounts: first by the users file, then
//! by RADIUS servers (RFC 2865, 2866, 5176). The edge speaks PPP authentication; this module only
//! answers its questions. Start with [`Authority::answer`].
//!
//! | file | contents |
//! |---|---|
//! | `radius` | requests to servers and their replies |
//! | `requests` | requests from servers: Disconnect-Requests and CoA-Requests |
//! | `accounts` | accounting records: written to disk, sent to a server, deleted |
//! | `rules` | realms, and waits after failed logins |
//! | `noted` | changes, for the audit log |
//! | `line` | the line of a subscriber, as reported to a server |
//! | `sockets` | sockets to servers |

mod accounts;
mod line;
mod noted;
mod radius;
mod requests;
mod rules;
mod sockets;

use std::sync::Arc;

use crate::config;
use crate::served::Edge;
use aaa::Users;
use aaa::throttle::ThrottleCounters;
use aaa::users::{Proof, Reject, Verdict};
use base::Instant;
use edge::{Admission, Question, Refusal};
use reactor::{Reactor, Slice};

pub(super) use noted::note_change;
pub(super) use radius::Radius;
pub(crate) use rules::Rules;

/// Requests that are answered between two looks at the clock.
const QUESTIONS: u64 = 32;

/// The users file and the RADIUS client of the daemon.
pub(super) struct Authority {
    users: Option<Arc<Users>>,
    radius: Option<Radius>,
    rules: Rules,
    /// Whether requests of the edge wait for the next turn.
    has_questions: bool,
}

impl Authority {
    /// The users file is asked first, then the servers. Without both, every user is accepted.
    pub(super) fn new(users: Option<Arc<Users>>, radius: Option<Radius>, rules: Rules) -> Self {
        Self {
            users,
            radius,
            rules,
            has_questions: false,
        }
    }

    /// The client of RADIUS servers, if any are configured.
    pub(super) fn radius(&self) -> Option<&Radius> {
        self.radius.as_ref()
    }

    /// Mutable access to [`Authority::radius`].
    pub(super) fn radius_mut(&mut self) -> Option<&mut Radius> {
        self.radius.as_mut()
    }

    /// The Acct-Session-Id of an account, if accounting is configured.
    pub(super) fn account(&self, number: u64) -> Option<String> {
        self.radius.as_ref().map(|radius| radius.account(number))
    }

    /// Replaces the users file; connected subscribers stay connected.
    pub(super) fn set_users(&mut self, users: Option<Arc<Users>>) {
        self.users = users;
    }

    /// Replaces the realms and the waits after failed logins.
    pub(super) fn set_rules(&mut self, settings: &config::Subscribers) {
        let realms = Arc::clone(&settings.realms);
        self.rules.reload(realms, settings.throttle);
    }

    /// Counters of logins that had to wait, if any may.
    pub(super) fn throttle(&self) -> Option<ThrottleCounters> {
        self.rules.counters()
    }

    /// Does what is due at the servers: [`Radius::work`].
    pub(super) fn work(
        &mut self,
        edge: &mut Edge,
        reactor: &mut Reactor,
        slice: Slice,
        now: Instant,
    ) {
        if let Some(radius) = &mut self.radius {
            radius.work(edge, &mut self.rules, reactor, slice, now);
        }
    }

    /// Answers pending authentication requests of the edge, until the slice is over. Returns how many.
    pub(super) fn answer(&mut self, edge: &mut Edge, slice: Slice, now: Instant) -> u64 {
        let mut count = 0;
        self.has_questions = false;
        while let Some(question) = edge.poll_question() {
            self.decide(&question, edge, now);
            count += 1;
            if count % QUESTIONS == 0 && slice.is_over() {
                self.has_questions = true;
                break;
            }
        }
        count
    }

    /// Whether requests or accounting entries are left over from the last turn.
    pub(super) fn has_work(&self) -> bool {
        self.has_questions || self.radius.as_ref().is_some_and(Radius::has_work)
    }

    fn decide(&mut self, question: &Question, edge: &mut Edge, now: Instant) {
        let subscriber = question.subscriber;
        if let Err(why) = self.rules.check(question, edge, now) {
            edge.refuse(subscriber, why, REFUSAL, now);
            return;
        }
        if let Some(tunnel) = edge.tunnel_of_user(&question.claim.name) {
            let tunnel = tunnel.to_owned();
            edge.switch_to(subscriber, &tunnel, now);
            return;
        }
        let name = self.rules.asked(question);
        let local = self.users.as_ref().map(|users| ask(users, name, question));
        match (local, &mut self.radius) {
            (Some(Verdict::Accept(grant)), _) => {
                let mut grant = *grant;
                self.rules.accepted(subscriber, &mut grant.profile, edge);
                let success = grant.success;
                let message = success.as_ref().map_or(WELCOME, |success| &success[..]);
                let admission = Admission {
                    profile: grant.profile,
                    sticky: grant.sticky,
                    is_remote: false,
                    sessions: grant.sessions.map(|most| u32::from(most.get())),
                    shape: None,
                    left_out: Vec::new(),
                };
                edge.admit(subscriber, admission, message, now);
            }
            (Some(Verdict::Reject(Reject::UnknownUser | Reject::Eap)) | None, Some(radius))
                if radius.authenticates() =>
            {
                radius.ask(question, edge, &self.rules, now);
            }
            (Some(Verdict::Reject(why)), _) => {
                let name = String::from_utf8_lossy(&question.claim.name);
                tracing::debug!(user = %name, %why, "not let in");
                self.rules.rejected(subscriber, edge, now);
                let why = (Refusal::Rejected, &*why.to_string());
                edge.refuse(subscriber, why, REFUSAL, now);
            }
            (None, _) => {
                let mut admission = Admission::default();
                let profile = &mut admission.profile;
                self.rules.accepted(subscriber, profile, edge);
                edge.admit(subscriber, admission, WELCOME, now);
            }
        }
    }
}

/// The message an accepted user is sent, unless a RADIUS server supplies another.
const WELCOME: &[u8] = b"access granted";
/// The message a rejected user is sent, whatever the reason.
const REFUSAL: &[u8] = b"authentication failed";

fn ask(users: &Users, name: &[u8], question: &Question) -> Verdict {
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
        ppp::Proof::MsChapV2 {
            challenge,
            response,
            ..
        } => Proof::MsChapV2 {
            challenge,
            response,
            name: &claim.name,
        },
        ppp::Proof::Eap { .. } => Proof::Eap,
    };
    users.authenticate(name, &proof)
}
