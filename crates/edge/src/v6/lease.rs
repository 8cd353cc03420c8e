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
    /// Bound to another association of the same message.
    Sibling,
}

impl State {
    /// The state for an association of a client. `has` answers whether the client's message has the association with an
    /// id.
    pub(super) fn of(
        binding: Option<&Binding>,
        (client, iaid): (u64, u32),
        has: impl FnOnce(u32) -> bool,
    ) -> Self {
        match binding {
            None => Self::Free,
            Some(one) if (one.client, one.iaid) == (client, iaid) => Self::Its,
            Some(one) if one.client == client && has(one.iaid) => Self::Sibling,
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
    /// Binds the lease that the sender names, if the link can have just that. Otherwise withdraws it.
    Restore,
    /// Answers that nothing is available.
    Refuse,
    /// Answers NoBinding.
    NoBinding,
    /// Answers that the client's leases are not right for the link: lifetimes of 0.
    Withdraw,
    /// Frees it.
    Free,
}

/// The table. A client behind the link that replaces another one takes over its lease by a Request.
///
/// After a link was down, its client sends a Rebind for a delegated prefix (section 18.2.12), and the session that had
/// leased the prefix is another one. So a Rebind of an unknown lease does not withdraw it if the link can have it again. A
/// Renew makes no binding: NoBinding makes the client send a Request, and a Renew that is late must not undo a Release.
pub(super) const fn step(state: State, event: Event) -> Action {
    match (state, event) {
        (State::Free | State::Its | State::Others, Event::Solicit) => Action::Offer,
        (State::Free | State::Its | State::Others, Event::Commit | Event::Request) => {
            Action::Assign
        }
        (State::Its, Event::Renew | Event::Rebind) => Action::Extend,
        (State::Free, Event::Rebind) => Action::Restore,
        (State::Free | State::Others, Event::Renew) => Action::NoBinding,
        (State::Others, Event::Rebind) => Action::Withdraw,
        // With NoBinding or a lease, the two associations would take the lease from each other without end.
        (
            State::Sibling,
            Event::Solicit | Event::Commit | Event::Request | Event::Renew | Event::Rebind,
        ) => Action::Refuse,
        (State::Its, Event::Release | Event::Decline) => Action::Free,
        (State::Free | State::Others | State::Sibling, Event::Release | Event::Decline) => {
            Action::NoBinding
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each state and message, by the section of RFC 8415 that has the message.
    #[test]
    fn every_message_does_in_every_state_what_its_section_has() {
        use Action::{Assign, Extend, Free, NoBinding, Offer, Refuse, Restore, Withdraw};
        use State::{Free as Nobodys, Its, Others, Sibling};
        let states = [Nobodys, Its, Others, Sibling];
        for (event, expected) in [
            // 18.3.1, without and with Rapid Commit.
            (Event::Solicit, [Offer, Offer, Offer, Refuse]),
            (Event::Commit, [Assign, Assign, Assign, Refuse]),
            // 18.3.2: also to a router that replaces another one.
            (Event::Request, [Assign, Assign, Assign, Refuse]),
            // 18.3.4: "NoBinding", or "NoPrefixAvail".
            (Event::Renew, [NoBinding, Extend, NoBinding, Refuse]),
            // 18.3.5: lifetimes of 0, because the server knows what is right for the link.
            (Event::Rebind, [Restore, Extend, Withdraw, Refuse]),
            // 18.3.7 and 18.3.8.
            (Event::Release, [NoBinding, Free, NoBinding, NoBinding]),
            (Event::Decline, [NoBinding, Free, NoBinding, NoBinding]),
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
        let of = |client, iaid| State::of(Some(&binding), (client, iaid), |_| false);
        assert_eq!(of(5, 7), State::Its);
        assert_eq!([of(5, 8), of(6, 7)], [State::Others; 2]);
        assert_eq!(State::of(None, (5, 7), |_| true), State::Free);
        let beside = |client, iaid| State::of(Some(&binding), (client, iaid), |other| other == 7);
        assert_eq!(
            [beside(5, 8), beside(5, 7), beside(6, 8)],
            [State::Sibling, State::Its, State::Others]
        );
    }
}
