//! The state machine of a connection (RFC 4271, section 8), as a total function of state and event.
//!
//! Each of the 28 events has a row in every state, and so has the 29th, SendHoldTimer_Expires (RFC 9687). These
//! optional session attributes can be set: DelayOpen, DampPeerOscillations, PassiveTcpEstablishment,
//! CollisionDetectEstablishedState, SendNOTIFICATIONwithoutOPEN. AllowAutomaticStart and AllowAutomaticStop are always
//! on. TrackTcpState is left out: a driver reports connections when they are up, so events 14 and 15 have rows but are
//! never signalled. [`Optional::graceful`] is the change of RFC 4724, section 5 in Established.

/// A state (RFC 4271, section 8.2.2), in the order in which a session passes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum State {
    /// Refuses all connections.
    Idle,
    /// Waits for its TCP connection.
    Connect,
    /// Listens, and will connect again unless it is passive.
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

/// An event (RFC 4271, section 8.1). The discriminants are the RFC's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Event {
    /// An operator starts the peer.
    ManualStart = 1,
    /// An operator stops the peer.
    ManualStop = 2,
    /// The system starts the peer.
    AutomaticStart = 3,
    /// An operator starts the peer, and we wait for it to connect.
    ManualStartPassive = 4,
    /// The system starts the peer, and we wait for it to connect.
    AutomaticStartPassive = 5,
    /// The system starts the peer after damping its oscillations.
    AutomaticStartDamped = 6,
    /// The system starts the peer after damping its oscillations, and we wait for it to connect.
    AutomaticStartDampedPassive = 7,
    /// The system stops the peer, for example at a prefix limit.
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
    /// A valid incoming connection request.
    TcpConnectionValid = 14,
    /// An invalid incoming connection request.
    TcpCrInvalid = 15,
    /// Our connection request was acknowledged.
    TcpCrAcked = 16,
    /// The incoming connection is up.
    TcpConnectionConfirmed = 17,
    /// The connection failed or was closed.
    TcpConnectionFails = 18,
    /// A valid OPEN.
    BgpOpen = 19,
    /// A valid OPEN while the DelayOpenTimer runs.
    BgpOpenDelayed = 20,
    /// A message header with an error.
    BgpHeaderErr = 21,
    /// An OPEN with an error.
    BgpOpenMsgErr = 22,
    /// The connection lost a collision (section 6.8).
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
    /// The stream accepted no data for the send hold time (RFC 9687).
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

/// The optional session attributes (RFC 4271, section 8.1.1) and timers that decide between rows.
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

/// A set of actions.
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
    /// Release all BGP resources: delete the routes of the connection.
    RELEASE = 13,
    /// Keep the connection's routes as stale routes (RFC 4724, section 4.2), and release the rest.
    RETAIN = 14,
    /// Damp oscillations: stay in Idle for the IdleHoldTimer.
    DAMP = 15,
    /// Reject the incoming TCP connection.
    REJECT = 16,
    /// Track a second connection until its OPEN (section 6.8).
    TRACK = 17,
    /// Look for a collision (section 6.8).
    COLLISION = 18,
    /// Process the routes of the UPDATE.
    UPDATE = 19,
    /// Start to exchange routes.
    UP = 20,
}

impl Actions {
    /// No action.
    pub const NONE: Self = Self(0);

    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn and_if(self, condition: bool, other: Self) -> Self {
        if condition { self.and(other) } else { self }
    }

    /// Whether all of `action` are in the set.
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

/// The NOTIFICATION that a row sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notify {
    /// None.
    No,
    /// Cease; the caller knows the reason and chooses the subcode (RFC 4486).
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
    /// The next state.
    pub next: State,
    /// The actions.
    pub actions: Actions,
    /// The NOTIFICATION that is sent before the connection is dropped.
    pub notify: Notify,
}

type A = Actions;
use State::{Active, Connect, Established, Idle, OpenConfirm, OpenSent};

/// The state table: the actions and the next state.
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

/// To Idle: timers stop, resources are released, and the connection is dropped.
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

/// To Idle, counted, and with damping if that is on.
const fn fail(notify: Notify, optional: Optional) -> Step {
    end(notify, A::COUNT.and_if(optional.damp, A::DAMP))
}

const fn idle(event: Event) -> Step {
    let start = A::CLEAR_COUNTER.and(A::START_RETRY);
    match event {
        Event::ManualStart | Event::AutomaticStart => go(Connect, start.and(A::CONNECT)),
        Event::ManualStartPassive | Event::AutomaticStartPassive => go(Active, start),
        // Damping depends on the counter, so it is not cleared.
        Event::AutomaticStartDamped => go(Connect, A::START_RETRY.and(A::CONNECT)),
        Event::AutomaticStartDampedPassive => go(Active, A::START_RETRY),
        Event::TcpConnectionValid
        | Event::TcpCrInvalid
        | Event::TcpCrAcked
        | Event::TcpConnectionConfirmed => go(Idle, A::REJECT),
        // The owner of the state machine answers IdleHoldTimer_Expires with a start event.
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

/// The connection is up in Connect or Active: send an OPEN, or start DelayOpen.
const fn tcp_up(state: State, optional: Optional) -> Step {
    if optional.delay_open {
        go(state, A::STOP_RETRY.and(A::START_DELAY))
    } else {
        go(OpenSent, A::STOP_RETRY.and(A::SEND_OPEN).and(A::HOLD_LARGE))
    }
}

/// The rows that Connect and Active share: all except stops, ConnectRetryTimer_Expires and TcpConnectionFails.
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
        // The three events for which Connect and Active have their own rows, and "any other event".
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
        // "any other event (Events 9, 11-13, 20, 25-28)". A NOTIFICATION among them is never answered with a
        // NOTIFICATION (section 6.4).
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
        // A second OPEN on the same connection: "collision detect is processed", which finds nothing to close.
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
                // The peer has restarted: its routes stay, the old connection is dropped, and the new one is accepted.
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
                // The text has a row for this event only with that attribute. Another OPEN on the same connection is
                // the "unexpected message in Established state" of RFC 6608.
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
        // "any other event (Events 9, 12-13, 20-22)". For errors in a header or an OPEN we send their own codes
        // (sections 6.1 and 6.2), which say more than a state machine error.
        Event::BgpHeaderErr | Event::BgpOpenMsgErr => fail(Notify::Found, optional),
        Event::ConnectRetryTimerExpires
        | Event::DelayOpenTimerExpires
        | Event::IdleHoldTimerExpires
        | Event::BgpOpenDelayed => fail(Notify::Fsm, optional),
    }
}

#[cfg(test)]
mod tests;
