//! Rules about names and lines that hold whatever source authenticates a subscriber: realms, and waits after failed logins.

use std::sync::Arc;

use aaa::realm::Method;
use aaa::throttle::{Subject, ThrottleCounters};
use aaa::{Profile, Realms, Throttle, ThrottleConfig};
use base::Instant;
use edge::{Phase, Question, Refusal, SubscriberKey};

use crate::served::{Edge, SubscriberView};

/// The realms, and the names and lines that failed lately.
#[derive(Default)]
pub(crate) struct Rules {
    realms: Arc<Realms>,
    throttle: Option<Throttle>,
    /// Hides which names share a place in the table of failures.
    seed: u64,
}

impl Rules {
    /// `seed` is random.
    pub(crate) fn new(realms: Arc<Realms>, throttle: Option<ThrottleConfig>, seed: u64) -> Self {
        Self {
            realms,
            throttle: throttle.map(|config| Throttle::new(config, seed)),
            seed,
        }
    }

    /// Takes over a new configuration. Failures are kept.
    pub(super) fn reload(&mut self, realms: Arc<Realms>, throttle: Option<ThrottleConfig>) {
        self.realms = realms;
        self.throttle = match (self.throttle.take(), throttle) {
            (_, None) => None,
            (None, Some(config)) => Some(Throttle::new(config, self.seed)),
            (Some(mut throttle), Some(config)) => {
                throttle.set_config(config);
                Some(throttle)
            }
        };
    }

    /// Counters of waits, if there are any.
    pub(super) fn counters(&self) -> Option<ThrottleCounters> {
        self.throttle.as_ref().map(Throttle::counters)
    }

    /// Whether a question may be answered at all.
    ///
    /// # Errors
    /// Why its subscriber is refused.
    pub(super) fn check(
        &mut self,
        question: &Question,
        edge: &Edge,
        now: Instant,
    ) -> Result<(), (Refusal, &'static str)> {
        let (realm, _) = self.realms.find(&question.claim.name);
        if realm.is_some_and(|realm| !realm.allows(method(&question.claim.proof))) {
            return Err((Refusal::Method, "a method that its realm does not allow"));
        }
        // Who is connected and is only challenged again does not suffer from others' failures.
        let view = edge.subscriber(question.subscriber);
        if let (Some(throttle), Some(view)) = (&mut self.throttle, view)
            && view.phase == Phase::Asking
        {
            let may_try = with_subjects(&view, |subjects| throttle.may_try(subjects, now));
            if !may_try {
                return Err((Refusal::Throttled, "too many failed logins; it has to wait"));
            }
        }
        Ok(())
    }

    /// The name that the users file and servers are asked for. A response by MS-CHAP covers the whole name, and by EAP a
    /// server gets the identity as it is (RFC 3579, section 2.1).
    pub(super) fn asked<'q>(&self, question: &'q Question) -> &'q [u8] {
        self.realms.find(&question.claim.name).1
    }

    /// The same, for RADIUS servers.
    pub(super) fn asked_of_servers<'q>(&self, question: &'q Question) -> &'q [u8] {
        match method(&question.claim.proof) {
            Method::MsChapV2 | Method::Eap => &question.claim.name,
            Method::None | Method::Pap | Method::Chap => self.asked(question),
        }
    }

    /// The servers that are asked about a name.
    pub(super) fn servers(&self, name: &[u8]) -> u16 {
        self.realms.servers(self.realms.find(name).0)
    }

    /// A subscriber proved itself: forgets its failures, and gives it what its realm has for it.
    pub(super) fn accepted(&mut self, key: SubscriberKey, profile: &mut Profile, edge: &Edge) {
        let Some(view) = edge.subscriber(key) else {
            return;
        };
        if let Some(realm) = self.realms.find(view.name).0 {
            realm.complete(profile);
        }
        if let Some(throttle) = &mut self.throttle {
            with_subjects(&view, |subjects| throttle.succeed(subjects));
        }
    }

    /// A subscriber did not prove itself.
    pub(super) fn rejected(&mut self, key: SubscriberKey, edge: &Edge, now: Instant) {
        if let (Some(throttle), Some(view)) = (&mut self.throttle, edge.subscriber(key)) {
            with_subjects(&view, |subjects| throttle.fail(subjects, now));
        }
    }
}

/// The name of a subscriber, and its line if that is known: the calling number (a MAC address, by PPPoE) and the values of
/// the access line.
fn with_subjects<R>(view: &SubscriberView<'_>, work: impl FnOnce(&[Subject<'_>]) -> R) -> R {
    let numbers = view.numbers;
    let line = numbers.map(|numbers| [&numbers.calling[..], &numbers.line[..]].concat());
    let name = Subject::Name(view.name);
    match line.as_deref().filter(|line| !line.is_empty()) {
        Some(line) => work(&[name, Subject::Line(line)]),
        None => work(&[name]),
    }
}

fn method(proof: &ppp::Proof) -> Method {
    match proof {
        ppp::Proof::None => Method::None,
        ppp::Proof::Pap { .. } => Method::Pap,
        ppp::Proof::Chap { .. } => Method::Chap,
        ppp::Proof::MsChapV2 { .. } => Method::MsChapV2,
        ppp::Proof::Eap { .. } => Method::Eap,
    }
}
