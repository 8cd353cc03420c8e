//! The states of one lease, and what each message of a client does to it (RFC 8415, section 18.3).
//!
//! A link has at most one lease of addresses and one of prefixes: a PPP link has one host or router at its end. It is
//! bound to a client (DUID) and an identity association (IAID).

use base::Instant;

/// Who has a lease, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    /// A hash of the client's DUID.
    pub(crate) client: u64,
    pub(crate) iaid: u32,
    pub(crate) until: Instant,
}

/// A lease, as the sender of a message sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nobody's.
    Free,
    /// Bound to the sender's association.
    Its,
    /// Bound to another client or association.
    Others,
}

impl State {
    pub(super) fn of(binding: Option<&Binding>, client: u64, iaid: u32) -> Self {
        match binding {
            None => Self::Free,
            Some(one) if (one.client, one.iaid) == (client, iaid) => Self::Its,
            Some(_) => Self::Others,
        }
    }
}

/// A message that names an identity association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Solicit,
    /// A Solicit with Rapid Commit, which we honour.
    Commit,
    Request,
    Renew,
    Rebind,
    Release,
    Decline,
}

/// What the server does with the association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Names what a Request would lease, and reserves nothing.
    Offer,
    /// Binds the lease to the sender.
    Assign,
    /// Extends it.
    Extend,
    /// Answers NoBinding.
    NoBinding,
    /// Answers that the client's leases are not right for the link: lifetimes of 0.
    Withdraw,
    /// Frees it.
    Free,
}

/// The table. A client behind the link that replaces another one takes over its lease by a Request.
pub(super) const fn step(state: State, event: Event) -> Action {
    match (state, event) {
        (State::Free | State::Its | State::Others, Event::Solicit) => Action::Offer,
        (State::Free | State::Its | State::Others, Event::Commit | Event::Request) => {
            Action::Assign
        }
        (State::Its, Event::Renew | Event::Rebind) => Action::Extend,
        (State::Free | State::Others, Event::Renew) => Action::NoBinding,
        (State::Free | State::Others, Event::Rebind) => Action::Withdraw,
        (State::Its, Event::Release | Event::Decline) => Action::Free,
        (State::Free | State::Others, Event::Release | Event::Decline) => Action::NoBinding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each state and message, by the section of RFC 8415 that has the message.
    #[test]
    fn every_message_does_in_every_state_what_its_section_has() {
        use Action::{Assign, Extend, Free, NoBinding, Offer, Withdraw};
        use State::{Free as Nobodys, Its, Others};
        let states = [Nobodys, Its, Others];
        for (event, expected) in [
            // 18.3.1, without and with Rapid Commit.
            (Event::Solicit, [Offer; 3]),
            (Event::Commit, [Assign; 3]),
            // 18.3.2: also to a router that replaces another one.
            (Event::Request, [Assign; 3]),
            // 18.3.4: "NoBinding".
            (Event::Renew, [NoBinding, Extend, NoBinding]),
            // 18.3.5: lifetimes of 0, because the server knows what is right for the link.
            (Event::Rebind, [Withdraw, Extend, Withdraw]),
            // 18.3.7 and 18.3.8.
            (Event::Release, [NoBinding, Free, NoBinding]),
            (Event::Decline, [NoBinding, Free, NoBinding]),
        ] {
            assert_eq!(
                states.map(|state| step(state, event)),
                expected,
                "{event:?}"
            );
        }
    }

    #[test]
    fn a_lease_belongs_to_one_client_and_one_association() {
        let binding = Binding {
            client: 5,
            iaid: 7,
            until: Instant::FAR_FUTURE,
        };
        let of = |client, iaid| State::of(Some(&binding), client, iaid);
        assert_eq!(of(5, 7), State::Its);
        assert_eq!([of(5, 8), of(6, 7)], [State::Others; 2]);
        assert_eq!(State::of(None, 5, 7), State::Free);
    }
}
