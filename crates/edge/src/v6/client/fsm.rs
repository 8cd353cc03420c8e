//! The states of a client's exchanges for a delegated prefix (RFC 8415, sections 18.2.1 to 18.2.10). The RFC has no
//! table; those sections are this one.

/// What the client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing: it has not started, or has given its prefix back.
    Off,
    /// The time of its first Solicit, or of the next attempt.
    Waiting,
    /// Advertises, or the Reply to a Solicit with Rapid Commit.
    Soliciting,
    /// The Reply to its Request.
    Requesting,
    /// T1.
    Bound,
    /// The Reply to its Renew, from the server of the lease.
    Renewing,
    /// The Reply to its Rebind, from any server.
    Rebinding,
    /// The Reply to its Release.
    Releasing,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The link is up.
    Start,
    /// The wait is over, or the retransmission time.
    Due,
    /// The message was sent as often as allowed.
    Exhausted,
    /// An Advertise was chosen.
    Chosen,
    /// A Reply has a prefix.
    Granted,
    /// A Reply has none, or an error.
    Refused,
    /// A Reply says that the server knows no such lease.
    NoBinding,
    /// A Reply withdraws the prefix: its valid lifetime is 0.
    Withdrawn,
    /// T1 has passed.
    T1,
    /// T2 has passed.
    T2,
    /// The prefix is not valid any more.
    Expired,
    /// The owner gives the prefix back.
    Release,
    /// The link is down.
    Stop,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing.
    Ignore,
    /// Sends the message again.
    Resend,
    /// Changes the state, which starts its exchange.
    To(State),
}

/// The whole table.
pub(super) const fn step(state: State, event: Event) -> Step {
    use Event::{
        Chosen, Due, Exhausted, Expired, Granted, NoBinding, Refused, Release, Start, Stop, T1, T2,
        Withdrawn,
    };
    use State::{Bound, Off, Rebinding, Releasing, Renewing, Requesting, Soliciting, Waiting};
    use Step::{Ignore, Resend, To};
    match (state, event) {
        (Off, Start) => To(Waiting),
        (
            Off,
            Due | Exhausted | Chosen | Granted | Refused | NoBinding | Withdrawn | T1 | T2
            | Expired | Release | Stop,
        ) => Ignore,
        (Waiting, Due) => To(Soliciting),
        (Waiting | Soliciting | Requesting, Release | Stop) => To(Off),
        (
            Waiting,
            Start | Exhausted | Chosen | Granted | Refused | NoBinding | Withdrawn | T1 | T2
            | Expired,
        ) => Ignore,
        (Soliciting | Requesting | Renewing | Rebinding | Releasing, Due) => Resend,
        (Soliciting, Chosen) => To(Requesting),
        (Soliciting | Requesting | Renewing | Rebinding, Granted) => To(Bound),
        // A server without a prefix is not asked again before the next transmission (section 14.1).
        (Soliciting, Start | Exhausted | Refused | NoBinding | Withdrawn | T1 | T2 | Expired) => {
            Ignore
        }
        // "Initiate the server discovery process" (section 18.2.2).
        (Requesting, Exhausted | Refused | NoBinding | Withdrawn) => To(Waiting),
        (Requesting, Start | Chosen | T1 | T2 | Expired) => Ignore,
        (Bound, T1) => To(Renewing),
        (Bound | Renewing, T2) => To(Rebinding),
        (Bound | Renewing | Rebinding, Expired) => To(Soliciting),
        (Bound | Renewing | Rebinding, Release) => To(Releasing),
        (Bound | Renewing | Rebinding | Releasing, Stop) => To(Off),
        (Bound, Start | Due | Exhausted | Chosen | Granted | Refused | NoBinding | Withdrawn) => {
            Ignore
        }
        (Renewing | Rebinding, NoBinding) => To(Requesting),
        (Renewing | Rebinding, Withdrawn) => To(Soliciting),
        (Renewing, Start | Exhausted | Chosen | Refused | T1) => Ignore,
        (Rebinding, Start | Exhausted | Chosen | Refused | T1 | T2) => Ignore,
        // "considers the Release event completed, regardless of the Status Code" (section 18.2.10.2).
        (Releasing, Granted | Refused | NoBinding | Withdrawn | Exhausted) => To(Off),
        (Releasing, Start | Chosen | T1 | T2 | Expired | Release) => Ignore,
    }
}
