//! The states of a session with the master agent. RFC 2741 has no table; this one follows its sections 7.1 and 7.2.

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Not connected: waits for the time of the next attempt.
    Waiting,
    /// The owner connects.
    Connecting,
    /// Open sent.
    Opening,
    /// Register sent, for one subtree after the other.
    Registering,
    /// All subtrees were registered or refused.
    Open,
    /// Open, and a Ping is unanswered.
    Pinging,
}

impl State {
    /// Its name for operators.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Connecting => "connecting",
            Self::Opening => "opening",
            Self::Registering => "registering",
            Self::Open => "open",
            Self::Pinging => "pinging",
        }
    }
}

/// An input of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// The deadline has passed.
    Timer,
    /// The owner has connected.
    Connected,
    /// The connection ended, or its bytes are no AgentX.
    Lost,
    /// A response without an error.
    Accepted,
    /// A response without an error, or with one, to the last Register.
    Finished,
    /// A response with an error.
    Refused,
    /// The master closed the session.
    Closed,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Ignore the input.
    Nothing,
    /// Ask the owner to connect.
    Connect,
    /// Send Open.
    SendOpen,
    /// Send Register for the next subtree.
    SendRegister,
    /// The session is open.
    Up,
    /// Send Ping.
    SendPing,
    /// Listen for the next silence.
    Rearm,
    /// Close the connection and wait.
    Drop,
}

/// The table.
pub(super) const fn step(state: State, input: Input) -> (Action, State) {
    use Action as A;
    use Input as I;
    use State as S;
    match (state, input) {
        (S::Waiting, I::Timer) => (A::Connect, S::Connecting),
        (S::Waiting, I::Connected | I::Lost) => (A::Drop, S::Waiting),
        (S::Waiting, I::Accepted | I::Finished | I::Refused | I::Closed) => {
            (A::Nothing, S::Waiting)
        }

        (S::Connecting, I::Connected) => (A::SendOpen, S::Opening),
        (S::Connecting, I::Timer | I::Lost) => (A::Drop, S::Waiting),
        (S::Connecting, I::Accepted | I::Finished | I::Refused | I::Closed) => {
            (A::Nothing, S::Connecting)
        }

        (S::Opening, I::Accepted) => (A::SendRegister, S::Registering),
        (S::Opening, I::Finished) => (A::Up, S::Open),
        (S::Opening, I::Timer | I::Lost | I::Refused | I::Closed) => (A::Drop, S::Waiting),
        (S::Opening, I::Connected) => (A::Nothing, S::Opening),

        (S::Registering, I::Accepted | I::Refused) => (A::SendRegister, S::Registering),
        (S::Registering, I::Finished) => (A::Up, S::Open),
        (S::Registering, I::Timer | I::Lost | I::Closed) => (A::Drop, S::Waiting),
        (S::Registering, I::Connected) => (A::Nothing, S::Registering),

        (S::Open, I::Timer) => (A::SendPing, S::Pinging),
        (S::Open, I::Lost | I::Closed) => (A::Drop, S::Waiting),
        (S::Open, I::Connected | I::Accepted | I::Finished | I::Refused) => (A::Nothing, S::Open),

        (S::Pinging, I::Accepted | I::Finished) => (A::Rearm, S::Open),
        (S::Pinging, I::Timer | I::Lost | I::Closed | I::Refused) => (A::Drop, S::Waiting),
        (S::Pinging, I::Connected) => (A::Nothing, S::Pinging),
    }
}
