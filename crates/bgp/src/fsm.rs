//! The state machine of a connection (RFC 4271, section 8), as one total function of state and event.
//!
//! All 28 events have their row in every state, and the 29th, SendHoldTimer_Expires (RFC 9687), too. Of the optional
//! session attributes these can be set: AllowAutomaticStart (always), AllowAutomaticStop (always), DelayOpen,
//! DampPeerOscillations, PassiveTcpEstablishment, CollisionDetectEstablishedState, SendNOTIFICATIONwithoutOPEN.
//! TrackTcpState cannot: a driver tells of connections that are up, so events 14 and 15 have their rows but nobody
//! signals them. What RFC 4724, section 5, changes in Established is [`Optional::graceful`].

/// A state of the machine (RFC 4271, section 8.2.2), from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum State {
    /// Refuses all connections.
    Idle,
    /// Waits for its TCP connection to be completed.
    Connect,
    /// Listens, and will try again to connect unless it is passive.
    Active,
    /// Waits for the peer's OPEN.
    OpenSent,
    /// Waits for the peer's KEEPALIVE or NOTIFICATION.
    OpenConfirm,
    /// Routes are exchanged.
    Established,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 6] = [
        Self::Idle,
        Self::Connect,
        Self::Active,
        Self::OpenSent,
        Self::OpenConfirm,
        Self::Established,
    ];

    /// The RFC's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "Idle",
            Self::Connect => "Connect",
            Self::Active => "Active",
            Self::OpenSent => "OpenSent",
            Self::OpenConfirm => "OpenConfirm",
            Self::Established => "Established",
        }
    }
}

/// What happens to a machine (RFC 4271, section 8.1); the discriminants are the RFC's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Event {
    /// An operator starts the peer.
    ManualStart = 1,
    /// An operator stops it.
    ManualStop = 2,
    /// The system starts it.
    AutomaticStart = 3,
    /// An operator starts it, to listen first.
    ManualStartPassive = 4,
    /// The system starts it, to listen first.
    AutomaticStartPassive = 5,
    /// The system starts it after oscillations were damped.
    AutomaticStartDamped = 6,
    /// ... and to listen first.
    AutomaticStartDampedPassive = 7,
    /// The system stops it, for example at a limit of prefixes.
    AutomaticStop = 8,
    /// The ConnectRetryTimer expired.
    ConnectRetryTimerExpires = 9,
    /// The HoldTimer expired.
    HoldTimerExpires = 10,
    /// The KeepaliveTimer expired.
    KeepaliveTimerExpires = 11,
    /// The DelayOpenTimer expired.
    DelayOpenTimerExpires = 12,
    /// The IdleHoldTimer expired.
    IdleHoldTimerExpires = 13,
    /// A valid request to connect came in.
    TcpConnectionValid = 14,
    /// A request to connect came in that is not valid.
    TcpCrInvalid = 15,
    /// Our request to connect was acknowledged.
    TcpCrAcked = 16,
    /// The peer's connection is up.
    TcpConnectionConfirmed = 17,
    /// The connection failed or was closed.
    TcpConnectionFails = 18,
    /// A valid OPEN.
    BgpOpen = 19,
    /// A valid OPEN while the DelayOpenTimer runs.
    BgpOpenDelayed = 20,
    /// A message's header is not valid.
    BgpHeaderErr = 21,
    /// An OPEN with an error.
    BgpOpenMsgErr = 22,
    /// Lost a collision (section 6.8).
    OpenCollisionDump = 23,
    /// A NOTIFICATION with a version error.
    NotifMsgVerErr = 24,
    /// Any other NOTIFICATION.
    NotifMsg = 25,
    /// A KEEPALIVE.
    KeepAliveMsg = 26,
    /// A valid UPDATE.
    UpdateMsg = 27,
    /// An UPDATE with an error that ends the session.
    UpdateMsgErr = 28,
    /// The stream took nothing for the send hold time (RFC 9687).
    SendHoldTimerExpires = 29,
}

impl Event {
    /// Every event.
    pub const ALL: [Self; 29] = [
        Self::ManualStart,
        Self::ManualStop,
        Self::AutomaticStart,
        Self::ManualStartPassive,
        Self::AutomaticStartPassive,
        Self::AutomaticStartDamped,
        Self::AutomaticStartDampedPassive,
        Self::AutomaticStop,
        Self::ConnectRetryTimerExpires,
        Self::HoldTimerExpires,
        Self::KeepaliveTimerExpires,
        Self::DelayOpenTimerExpires,
        Self::IdleHoldTimerExpires,
        Self::TcpConnectionValid,
        Self::TcpCrInvalid,
        Self::TcpCrAcked,
        Self::TcpConnectionConfirmed,
        Self::TcpConnectionFails,
        Self::BgpOpen,
        Self::BgpOpenDelayed,
        Self::BgpHeaderErr,
        Self::BgpOpenMsgErr,
        Self::OpenCollisionDump,
        Self::NotifMsgVerErr,
        Self::NotifMsg,
        Self::KeepAliveMsg,
        Self::UpdateMsg,
        Self::UpdateMsgErr,
        Self::SendHoldTimerExpires,
    ];

    /// The RFC's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ManualStart => "ManualStart",
            Self::ManualStop => "ManualStop",
            Self::AutomaticStart => "AutomaticStart",
            Self::ManualStartPassive => "ManualStart_with_PassiveTcpEstablishment",
            Self::AutomaticStartPassive => "AutomaticStart_with_PassiveTcpEstablishment",
            Self::AutomaticStartDamped => "AutomaticStart_with_DampPeerOscillations",
            Self::AutomaticStartDampedPassive => {
                "AutomaticStart_with_DampPeerOscillations_and_PassiveTcpEstablishment"
            }
            Self::AutomaticStop => "AutomaticStop",
            Self::ConnectRetryTimerExpires => "ConnectRetryTimer_Expires",
            Self::HoldTimerExpires => "HoldTimer_Expires",
            Self::KeepaliveTimerExpires => "KeepaliveTimer_Expires",
            Self::DelayOpenTimerExpires => "DelayOpenTimer_Expires",
            Self::IdleHoldTimerExpires => "IdleHoldTimer_Expires",
            Self::TcpConnectionValid => "TcpConnection_Valid",
            Self::TcpCrInvalid => "Tcp_CR_Invalid",
            Self::TcpCrAcked => "Tcp_CR_Acked",
            Self::TcpConnectionConfirmed => "TcpConnectionConfirmed",
            Self::TcpConnectionFails => "TcpConnectionFails",
            Self::BgpOpen => "BGPOpen",
            Self::BgpOpenDelayed => "BGPOpen with DelayOpenTimer running",
            Self::BgpHeaderErr => "BGPHeaderErr",
            Self::BgpOpenMsgErr => "BGPOpenMsgErr",
            Self::OpenCollisionDump => "OpenCollisionDump",
            Self::NotifMsgVerErr => "NotifMsgVerErr",
            Self::NotifMsg => "NotifMsg",
            Self::KeepAliveMsg => "KeepAliveMsg",
            Self::UpdateMsg => "UpdateMsg",
            Self::UpdateMsgErr => "UpdateMsgErr",
            Self::SendHoldTimerExpires => "SendHoldTimer_Expires",
        }
    }
}

/// The optional session attributes (RFC 4271, section 8.1.1) and timers that rows of the table ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Optional {
    /// DelayOpen.
    pub delay_open: bool,
    /// Whether the DelayOpenTimer runs.
    pub delay_open_running: bool,
    /// SendNOTIFICATIONwithoutOPEN.
    pub notify_without_open: bool,
    /// CollisionDetectEstablishedState.
    pub collision_established: bool,
    /// DampPeerOscillations.
    pub damp: bool,
    /// Whether the peer sent a Graceful Restart capability with a family in it (RFC 4724, section 5).
    pub graceful: bool,
}

/// What is to be done, as a set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Actions(u32);

macro_rules! actions {
    ($($(#[$doc:meta])* $name:ident = $bit:literal,)*) => {
        impl Actions {
            $($(#[$doc])* pub const $name: Self = Self(1 << $bit);)*
            const NAMES: &'static [(&'static str, Self)] = &[$((stringify!($name), Self::$name)),*];
        }
    };
}

actions! {
    /// Set ConnectRetryCounter to zero.
    CLEAR_COUNTER = 0,
    /// Increment ConnectRetryCounter by 1.
    COUNT = 1,
    /// Start the ConnectRetryTimer with its initial value.
    START_RETRY = 2,
    /// Stop the ConnectRetryTimer.
    STOP_RETRY = 3,
    /// Initiate a TCP connection.
    CONNECT = 4,
    /// Drop the TCP connection.
    DROP = 5,
    /// Start the DelayOpenTimer.
    START_DELAY = 6,
    /// Stop the DelayOpenTimer.
    STOP_DELAY = 7,
    /// Send an OPEN.
    SEND_OPEN = 8,
    /// Send a KEEPALIVE and restart the KeepaliveTimer.
    SEND_KEEPALIVE = 9,
    /// Set the HoldTimer to a large value.
    HOLD_LARGE = 10,
    /// Set the HoldTimer to the negotiated value, and the KeepaliveTimer.
    HOLD_NEGOTIATED = 11,
    /// Restart the HoldTimer.
    RESTART_HOLD = 12,
    /// Release all BGP resources: routes of the connection are deleted.
    RELEASE = 13,
    /// Keep the connection's routes as stale (RFC 4724, section 4.2), release the rest.
    RETAIN = 14,
    /// Damp oscillations: stay in Idle for the IdleHoldTimer.
    DAMP = 15,
    /// Reject the TCP connection that came in.
    REJECT = 16,
    /// Track a second connection until its OPEN (section 6.8).
    TRACK = 17,
    /// Look for a collision (section 6.8).
    COLLISION = 18,
    /// Take the UPDATE's routes.
    UPDATE = 19,
    /// Exchange of routes begins.
    UP = 20,
}

impl Actions {
    /// Nothing.
    pub const NONE: Self = Self(0);

    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn and_if(self, condition: bool, other: Self) -> Self {
        if condition { self.and(other) } else { self }
    }

    /// Whether all of `action` are among them.
    #[must_use]
    pub const fn has(self, action: Self) -> bool {
        self.0 & action.0 == action.0
    }
}

impl core::fmt::Debug for Actions {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let names = Self::NAMES.iter().filter(|(_, one)| self.has(*one));
        f.debug_set().entries(names.map(|(name, _)| name)).finish()
    }
}

/// Which NOTIFICATION a row has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notify {
    /// None.
    No,
    /// Cease; its subcode (RFC 4486) is the caller's, who knows why.
    Cease,
    /// Hold Timer Expired.
    HoldTimer,
    /// The error that was found in a message.
    Found,
    /// Finite State Machine Error, with the state's subcode (RFC 6608).
    Fsm,
    /// Send Hold Timer Expired (RFC 9687).
    SendHold,
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The state after it.
    pub next: State,
    /// What is to be done.
    pub actions: Actions,
    /// What the peer is told before its connection is dropped.
    pub notify: Notify,
}

type A = Actions;
use State::{Active, Connect, Established, Idle, OpenConfirm, OpenSent};

/// The table: what is to be done, and the state after it.
#[must_use]
pub const fn step(state: State, event: Event, optional: Optional) -> Step {
    match state {
        Idle => idle(event),
        Connect => connect(event, optional),
        Active => active(event, optional),
        OpenSent => open_sent(event, optional),
        OpenConfirm => open_confirm(event, optional),
        Established => established(event, optional),
    }
}

const fn go(next: State, actions: Actions) -> Step {
    let notify = Notify::No;
    Step {
        next,
        actions,
        notify,
    }
}

/// To Idle: timers stop, resources are released, the connection is dropped.
const fn end(notify: Notify, actions: Actions) -> Step {
    Step {
        next: Idle,
        actions: actions
            .and(A::STOP_RETRY)
            .and(A::STOP_DELAY)
            .and(A::RELEASE)
            .and(A::DROP),
        notify,
    }
}

/// To Idle, counted, and damped where that is on.
const fn fail(notify: Notify, optional: Optional) -> Step {
    end(notify, A::COUNT.and_if(optional.damp, A::DAMP))
}

const fn idle(event: Event) -> Step {
    let start = A::CLEAR_COUNTER.and(A::START_RETRY);
    match event {
        Event::ManualStart | Event::AutomaticStart => go(Connect, start.and(A::CONNECT)),
        Event::ManualStartPassive | Event::AutomaticStartPassive => go(Active, start),
        // The counter is what damping goes by: it is not cleared.
        Event::AutomaticStartDamped => go(Connect, A::START_RETRY.and(A::CONNECT)),
        Event::AutomaticStartDampedPassive => go(Active, A::START_RETRY),
        Event::TcpConnectionValid
        | Event::TcpCrInvalid
        | Event::TcpCrAcked
        | Event::TcpConnectionConfirmed => go(Idle, A::REJECT),
        // The machine's owner answers IdleHoldTimer_Expires with a start event.
        Event::IdleHoldTimerExpires
        | Event::ManualStop
        | Event::AutomaticStop
        | Event::ConnectRetryTimerExpires
        | Event::HoldTimerExpires
        | Event::KeepaliveTimerExpires
        | Event::DelayOpenTimerExpires
        | Event::TcpConnectionFails
        | Event::BgpOpen
        | Event::BgpOpenDelayed
        | Event::BgpHeaderErr
        | Event::BgpOpenMsgErr
        | Event::OpenCollisionDump
        | Event::NotifMsgVerErr
        | Event::NotifMsg
        | Event::KeepAliveMsg
        | Event::UpdateMsg
        | Event::UpdateMsgErr
        | Event::SendHoldTimerExpires => go(Idle, A::NONE),
    }
}

/// The connection is up, in Connect or Active: OPEN, or DelayOpen first.
const fn tcp_up(state: State, optional: Optional) -> Step {
    if optional.delay_open {
        go(state, A::STOP_RETRY.and(A::START_DELAY))
    } else {
        go(OpenSent, A::STOP_RETRY.and(A::SEND_OPEN).and(A::HOLD_LARGE))
    }
}

/// What is the same in Connect and Active: all but a stop, ConnectRetryTimer_Expires and TcpConnectionFails.
const fn before_open(state: State, event: Event, optional: Optional) -> Step {
    match event {
        Event::ManualStart
        | Event::AutomaticStart
        | Event::ManualStartPassive
        | Event::AutomaticStartPassive
        | Event::AutomaticStartDamped
        | Event::AutomaticStartDampedPassive
        | Event::TcpConnectionValid => go(state, A::NONE),
        Event::TcpCrInvalid => go(state, A::REJECT),
        Event::TcpCrAcked | Event::TcpConnectionConfirmed => tcp_up(state, optional),
        Event::DelayOpenTimerExpires => go(
            OpenSent,
            A::STOP_RETRY
                .and(A::STOP_DELAY)
                .and(A::SEND_OPEN)
                .and(A::HOLD_LARGE),
        ),
        Event::BgpOpenDelayed => go(
            OpenConfirm,
            A::STOP_RETRY
                .and(A::STOP_DELAY)
                .and(A::COLLISION)
                .and(A::SEND_OPEN)
                .and(A::SEND_KEEPALIVE)
                .and(A::HOLD_NEGOTIATED),
        ),
        Event::BgpHeaderErr | Event::BgpOpenMsgErr => {
            let notify = if optional.notify_without_open {
                Notify::Found
            } else {
                Notify::No
            };
            fail(notify, optional)
        }
        Event::NotifMsgVerErr => {
            if optional.delay_open_running {
                end(Notify::No, A::NONE)
            } else {
                fail(Notify::No, optional)
            }
        }
        // The three that Connect and Active have rows of their own for, and "any other event".
        Event::ManualStop
        | Event::ConnectRetryTimerExpires
        | Event::TcpConnectionFails
        | Event::AutomaticStop
        | Event::HoldTimerExpires
        | Event::KeepaliveTimerExpires
        | Event::IdleHoldTimerExpires
        | Event::BgpOpen
        | Event::OpenCollisionDump
        | Event::NotifMsg
        | Event::KeepAliveMsg
        | Event::UpdateMsg
        | Event::UpdateMsgErr
        | Event::SendHoldTimerExpires => fail(Notify::No, optional),
    }
}

const fn connect(event: Event, optional: Optional) -> Step {
    match event {
        Event::ManualStop => end(Notify::No, A::CLEAR_COUNTER),
        Event::ConnectRetryTimerExpires => go(
            Connect,
            A::DROP
                .and(A::START_RETRY)
                .and(A::STOP_DELAY)
                .and(A::CONNECT),
        ),
        Event::TcpConnectionFails => {
            if optional.delay_open_running {
                go(Active, A::START_RETRY.and(A::STOP_DELAY).and(A::DROP))
            } else {
                end(Notify::No, A::NONE)
            }
        }
        other => before_open(Connect, other, optional),
    }
}

const fn active(event: Event, optional: Optional) -> Step {
    match event {
        Event::ManualStop => {
            let notify = if optional.delay_open_running && optional.notify_without_open {
                Notify::Cease
            } else {
                Notify::No
            };
            end(notify, A::CLEAR_COUNTER)
        }
        Event::ConnectRetryTimerExpires => go(Connect, A::START_RETRY.and(A::CONNECT)),
        Event::TcpConnectionFails => Step {
            next: Idle,
            actions: A::START_RETRY
                .and(A::STOP_DELAY)
                .and(A::RELEASE)
                .and(A::DROP)
                .and(A::COUNT)
                .and_if(optional.damp, A::DAMP),
            notify: Notify::No,
        },
        other => before_open(Active, other, optional),
    }
}

const fn open_sent(event: Event, optional: Optional) -> Step {
    match event {
        Event::ManualStart
        | Event::AutomaticStart
        | Event::ManualStartPassive
        | Event::AutomaticStartPassive
        | Event::AutomaticStartDamped
        | Event::AutomaticStartDampedPassive
        | Event::TcpCrInvalid => go(OpenSent, A::NONE),
        Event::ManualStop => end(Notify::Cease, A::CLEAR_COUNTER),
        Event::AutomaticStop | Event::OpenCollisionDump => fail(Notify::Cease, optional),
        Event::HoldTimerExpires => fail(Notify::HoldTimer, optional),
        Event::SendHoldTimerExpires => fail(Notify::SendHold, optional),
        Event::TcpConnectionValid | Event::TcpCrAcked | Event::TcpConnectionConfirmed => {
            go(OpenSent, A::TRACK)
        }
        Event::TcpConnectionFails => go(Active, A::DROP.and(A::START_RETRY)),
        Event::BgpOpen => go(
            OpenConfirm,
            A::STOP_DELAY
                .and(A::STOP_RETRY)
                .and(A::COLLISION)
                .and(A::SEND_KEEPALIVE)
                .and(A::HOLD_NEGOTIATED),
        ),
        Event::BgpHeaderErr | Event::BgpOpenMsgErr => fail(Notify::Found, optional),
        Event::NotifMsgVerErr => end(Notify::No, A::NONE),
        // "any other event (Events 9, 11-13, 20, 25-28)". Of them, a NOTIFICATION is never answered by one
        // (section 6.4).
        Event::NotifMsg => fail(Notify::No, optional),
        Event::ConnectRetryTimerExpires
        | Event::KeepaliveTimerExpires
        | Event::DelayOpenTimerExpires
        | Event::IdleHoldTimerExpires
        | Event::BgpOpenDelayed
        | Event::KeepAliveMsg
        | Event::UpdateMsg
        | Event::UpdateMsgErr => fail(Notify::Fsm, optional),
    }
}

const fn open_confirm(event: Event, optional: Optional) -> Step {
    match event {
        Event::ManualStart
        | Event::AutomaticStart
        | Event::ManualStartPassive
        | Event::AutomaticStartPassive
        | Event::AutomaticStartDamped
        | Event::AutomaticStartDampedPassive
        | Event::TcpCrInvalid => go(OpenConfirm, A::NONE),
        Event::ManualStop => end(Notify::Cease, A::CLEAR_COUNTER),
        Event::AutomaticStop | Event::OpenCollisionDump => fail(Notify::Cease, optional),
        Event::HoldTimerExpires => fail(Notify::HoldTimer, optional),
        Event::SendHoldTimerExpires => fail(Notify::SendHold, optional),
        Event::KeepaliveTimerExpires => go(OpenConfirm, A::SEND_KEEPALIVE),
        Event::TcpConnectionValid | Event::TcpCrAcked | Event::TcpConnectionConfirmed => {
            go(OpenConfirm, A::TRACK)
        }
        Event::TcpConnectionFails | Event::NotifMsg => fail(Notify::No, optional),
        Event::NotifMsgVerErr => end(Notify::No, A::NONE),
        // A second OPEN on the connection itself: "collision detect is processed", which finds nothing to close.
        Event::BgpOpen => go(OpenConfirm, A::COLLISION),
        Event::BgpHeaderErr | Event::BgpOpenMsgErr => fail(Notify::Found, optional),
        Event::KeepAliveMsg => go(Established, A::RESTART_HOLD.and(A::UP)),
        Event::ConnectRetryTimerExpires
        | Event::DelayOpenTimerExpires
        | Event::IdleHoldTimerExpires
        | Event::BgpOpenDelayed
        | Event::UpdateMsg
        | Event::UpdateMsgErr => fail(Notify::Fsm, optional),
    }
}

const fn established(event: Event, optional: Optional) -> Step {
    match event {
        Event::ManualStart
        | Event::AutomaticStart
        | Event::ManualStartPassive
        | Event::AutomaticStartPassive
        | Event::AutomaticStartDamped
        | Event::AutomaticStartDampedPassive
        | Event::TcpCrInvalid => go(Established, A::NONE),
        Event::ManualStop => end(Notify::Cease, A::CLEAR_COUNTER),
        Event::AutomaticStop | Event::OpenCollisionDump => fail(Notify::Cease, optional),
        Event::HoldTimerExpires => fail(Notify::HoldTimer, optional),
        Event::SendHoldTimerExpires => fail(Notify::SendHold, optional),
        Event::KeepaliveTimerExpires => go(Established, A::SEND_KEEPALIVE),
        Event::TcpConnectionValid => go(Established, A::TRACK),
        Event::TcpCrAcked | Event::TcpConnectionConfirmed => {
            if optional.graceful {
                // The peer has restarted: its routes stay, the old connection goes, the new one is taken up.
                go(
                    Connect,
                    A::RETAIN
                        .and(A::DROP)
                        .and(A::CLEAR_COUNTER)
                        .and(A::START_RETRY),
                )
            } else {
                go(Established, A::TRACK)
            }
        }
        Event::BgpOpen => {
            if optional.collision_established {
                go(Established, A::COLLISION)
            } else {
                // The text gives this event a row with that attribute only. An OPEN on the connection itself has no
                // business here: RFC 6608's "unexpected message in Established state".
                fail(Notify::Fsm, optional)
            }
        }
        Event::TcpConnectionFails => {
            if optional.graceful {
                Step {
                    next: Idle,
                    actions: A::STOP_RETRY.and(A::RETAIN).and(A::DROP).and(A::COUNT),
                    notify: Notify::No,
                }
            } else {
                end(Notify::No, A::COUNT)
            }
        }
        Event::NotifMsgVerErr | Event::NotifMsg => end(Notify::No, A::COUNT),
        Event::KeepAliveMsg => go(Established, A::RESTART_HOLD),
        Event::UpdateMsg => go(Established, A::RESTART_HOLD.and(A::UPDATE)),
        Event::UpdateMsgErr => fail(Notify::Found, optional),
        // "any other event (Events 9, 12-13, 20-22)". Errors found in a header or an OPEN are told as they were
        // found (sections 6.1 and 6.2), which says more than a state machine error.
        Event::BgpHeaderErr | Event::BgpOpenMsgErr => fail(Notify::Found, optional),
        Event::ConnectRetryTimerExpires
        | Event::DelayOpenTimerExpires
        | Event::IdleHoldTimerExpires
        | Event::BgpOpenDelayed => fail(Notify::Fsm, optional),
    }
}

#[cfg(test)]
mod tests;
