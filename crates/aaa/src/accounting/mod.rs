//! Accounting of a subscriber's session (RFC 2866): what a record contains, and how records eventually reach a
//! server.
//!
//! - [`Record`]: one record, encoded once into bytes that can be stored, even across a restart. They hold the
//!   event's time (Event-Timestamp), but no identifier, authenticator or secret.
//! - [`Delivery`]: decides which waiting record is sent when. Start reading here.
//! - [`SessionId`]: identifies a session in its records.
//!
//! Left out: Acct-Multi-Session-Id and Acct-Link-Count (multilink), and tunnel records (RFC 2867, section 3): a
//! session's own records name its tunnel.
//!
//! Implements parts of RFC 2865, section 5.25; RFC 3162, sections 2.2 and 2.3; RFC 4818; RFC 6911, section 3.1.

mod delivery;
mod session;

use core::net::{IpAddr, Ipv4Addr};

use wire::radius::attribute::{
    ACCT_AUTHENTIC, ACCT_INPUT_GIGAWORDS, ACCT_INPUT_OCTETS, ACCT_INPUT_PACKETS,
    ACCT_OUTPUT_GIGAWORDS, ACCT_OUTPUT_OCTETS, ACCT_OUTPUT_PACKETS, ACCT_SESSION_ID,
    ACCT_SESSION_TIME, ACCT_STATUS_TYPE, ACCT_TERMINATE_CAUSE, CLASS, DELEGATED_IPV6_PREFIX,
    EVENT_TIMESTAMP, FRAMED_INTERFACE_ID, FRAMED_IP_ADDRESS, FRAMED_IPV6_ADDRESS,
    FRAMED_IPV6_PREFIX, USER_NAME, authentic, status,
};
use wire::radius::{List, TooLong};

use crate::Prefix;
use crate::radius::queue::own;
use crate::radius::{Line, Nas};

pub use delivery::{Delivery, DeliveryConfig, DeliveryEvent, DeliveryTotals, Outgoing};
pub use session::SessionId;

/// One accounting record.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The NAS that sends it.
    pub nas: &'a Nas,
    /// The session accounted for; Accounting-On and Accounting-Off have a session ID of their own.
    pub session: SessionId,
    /// When the event happened, in seconds since 1970.
    pub at_s: u64,
    /// The reported event.
    pub report: Report<'a>,
}

/// What a record reports (RFC 2866, section 5.1).
#[derive(Clone, Copy, Debug)]
pub enum Report<'a> {
    /// Accounting starts: no subscriber is connected. Accounting-On.
    On,
    /// Accounting ends: no subscriber is connected any more. Accounting-Off.
    Off,
    /// A subscriber connected. Start.
    Start(Subscriber<'a>),
    /// The subscriber is still connected. Interim-Update (RFC 2869, section 2.1).
    Interim(Subscriber<'a>, Usage),
    /// The subscriber disconnected. Stop.
    Stop(Subscriber<'a>, Usage, TerminateCause),
}

/// The subscriber that a record is about.
#[derive(Clone, Copy, Debug)]
pub struct Subscriber<'a> {
    /// The user name to account for.
    pub user: &'a [u8],
    /// Where the subscriber is connected.
    pub line: Line<'a>,
    /// The Class attributes that the server asked to receive in each record, unchanged.
    pub class: &'a [Box<[u8]>],
    /// Its IPv4 address.
    pub address: Option<Ipv4Addr>,
    /// Its IPv6 interface identifier.
    pub interface_id: Option<[u8; 8]>,
    /// Its IPv6 prefixes.
    pub ipv6: Ipv6Leases,
    /// What authenticated the subscriber.
    pub authentic: Authentic,
}

/// The IPv6 prefixes that a subscriber has now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ipv6Leases {
    /// The prefix of its link (Framed-IPv6-Prefix, RFC 3162, section 2.3).
    pub prefix: Option<Prefix>,
    /// The prefix delegated to it (Delegated-IPv6-Prefix, RFC 4818, section 3).
    pub delegated: Option<Prefix>,
    /// The address that it leased by DHCPv6 (Framed-IPv6-Address, RFC 6911, section 3.1), with 128 bits.
    pub address: Option<Prefix>,
}

impl Ipv6Leases {
    fn write(&self, list: &mut List<'_>) {
        for (kind, prefix) in [
            (FRAMED_IPV6_PREFIX, self.prefix),
            (DELEGATED_IPV6_PREFIX, self.delegated),
        ] {
            let Some(prefix) = prefix else { continue };
            let IpAddr::V6(address) = prefix.address() else {
                continue;
            };
            // Octets behind the prefix length may be left out (RFC 3162, section 2.3).
            let octets = usize::from(prefix.length().div_ceil(8));
            let mut value = [0; 18];
            value[1] = prefix.length();
            value[2..2 + octets].copy_from_slice(&address.octets()[..octets]);
            list.attribute(kind, &value[..2 + octets]);
        }
        if let Some(IpAddr::V6(address)) = self.address.map(Prefix::address) {
            list.attribute(FRAMED_IPV6_ADDRESS, &address.octets());
        }
    }
}

/// What authenticated a subscriber (RFC 2866, section 5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authentic {
    /// A RADIUS server.
    Radius,
    /// The local users file.
    Local,
}

/// A subscriber's usage so far. Input is from the subscriber, output to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Usage {
    /// Seconds connected.
    pub time_s: u64,
    /// Octets from the subscriber.
    pub input_octets: u64,
    /// Octets to the subscriber.
    pub output_octets: u64,
    /// Packets from the subscriber.
    pub input_packets: u64,
    /// Packets to the subscriber.
    pub output_packets: u64,
    /// Counters of its queues, if they are reported.
    pub queue: Option<QueueUsage>,
}

/// Counters of a subscriber's queues, down and up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct QueueUsage {
    /// The vendor number of our own attributes.
    pub vendor: u32,
    /// Packets dropped.
    pub dropped: [u64; 2],
    /// Packets marked with congestion experienced (RFC 3168).
    pub marked: [u64; 2],
}

/// Why a session ended (RFC 2866, section 5.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TerminateCause {
    /// The subscriber asked for it.
    UserRequest = 1,
    /// The line was lost.
    LostCarrier = 2,
    /// The service is no longer available.
    LostService = 3,
    /// It was idle for too long.
    IdleTimeout = 4,
    /// It reached its session timeout.
    SessionTimeout = 5,
    /// An operator, or a Disconnect-Request, ended it.
    AdminReset = 6,
    /// An operator is about to restart the NAS.
    AdminReboot = 7,
    /// Its port failed.
    PortError = 8,
    /// The NAS failed.
    NasError = 9,
    /// The NAS ended it for another reason.
    NasRequest = 10,
    /// The NAS restarted unexpectedly.
    NasReboot = 11,
    /// Its port is no longer needed.
    PortUnneeded = 12,
    /// Its port was needed for another session.
    PortPreempted = 13,
    /// Its port is suspended.
    PortSuspended = 14,
    /// The service cannot be provided.
    ServiceUnavailable = 15,
    /// The subscriber is to be called back.
    Callback = 16,
    /// The subscriber's input is wrong.
    UserError = 17,
    /// The host at the other end ended it.
    HostRequest = 18,
}

impl TerminateCause {
    /// Every cause, in the order of its number; the first is 1.
    pub const ALL: [Self; 18] = [
        Self::UserRequest,
        Self::LostCarrier,
        Self::LostService,
        Self::IdleTimeout,
        Self::SessionTimeout,
        Self::AdminReset,
        Self::AdminReboot,
        Self::PortError,
        Self::NasError,
        Self::NasRequest,
        Self::NasReboot,
        Self::PortUnneeded,
        Self::PortPreempted,
        Self::PortSuspended,
        Self::ServiceUnavailable,
        Self::Callback,
        Self::UserError,
        Self::HostRequest,
    ];

    /// The RFC's name for the cause.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UserRequest => "User Request",
            Self::LostCarrier => "Lost Carrier",
            Self::LostService => "Lost Service",
            Self::IdleTimeout => "Idle Timeout",
            Self::SessionTimeout => "Session Timeout",
            Self::AdminReset => "Admin Reset",
            Self::AdminReboot => "Admin Reboot",
            Self::PortError => "Port Error",
            Self::NasError => "NAS Error",
            Self::NasRequest => "NAS Request",
            Self::NasReboot => "NAS Reboot",
            Self::PortUnneeded => "Port Unneeded",
            Self::PortPreempted => "Port Preempted",
            Self::PortSuspended => "Port Suspended",
            Self::ServiceUnavailable => "Service Unavailable",
            Self::Callback => "Callback",
            Self::UserError => "User Error",
            Self::HostRequest => "Host Request",
        }
    }
}

impl Record<'_> {
    /// Appends the record's attributes to `out`, in the form that [`crate::radius::Client::account`] takes.
    ///
    /// # Errors
    /// The name is longer than 253 octets, or the Class attributes exceed what a server can grant
    /// ([`crate::radius::accept::CLASS_OCTETS_MAX`]); `out` is unchanged.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let mut list = List::new(out);
        list.integer(ACCT_STATUS_TYPE, self.report.status())
            .integer(
                EVENT_TIMESTAMP,
                u32::try_from(self.at_s).unwrap_or(u32::MAX),
            );
        self.nas.write(&mut list);
        match self.report {
            Report::On | Report::Off => {
                list.attribute(ACCT_SESSION_ID, &self.session.text());
            }
            Report::Start(subscriber) => subscriber.write(&mut list, self.session),
            Report::Interim(subscriber, usage) => {
                subscriber.write(&mut list, self.session);
                usage.write(&mut list);
            }
            Report::Stop(subscriber, usage, cause) => {
                subscriber.write(&mut list, self.session);
                usage.write(&mut list);
                list.integer(ACCT_TERMINATE_CAUSE, cause as u32);
            }
        }
        list.finish()
    }
}

impl Report<'_> {
    const fn status(&self) -> u32 {
        match self {
            Self::On => status::ACCOUNTING_ON,
            Self::Off => status::ACCOUNTING_OFF,
            Self::Start(_) => status::START,
            Self::Interim(..) => status::INTERIM_UPDATE,
            Self::Stop(..) => status::STOP,
        }
    }
}

impl Subscriber<'_> {
    fn write(&self, list: &mut List<'_>, session: SessionId) {
        list.attribute(USER_NAME, self.user);
        self.line.write(list, session);
        if let Some(tunnel) = &self.line.tunnel {
            tunnel.write_call(list);
        }
        if let Some(address) = self.address {
            list.address(FRAMED_IP_ADDRESS, address);
        }
        if let Some(interface_id) = &self.interface_id {
            list.attribute(FRAMED_INTERFACE_ID, interface_id);
        }
        self.ipv6.write(list);
        list.integer(
            ACCT_AUTHENTIC,
            match self.authentic {
                Authentic::Radius => authentic::RADIUS,
                Authentic::Local => authentic::LOCAL,
            },
        );
        for class in self.class {
            list.attribute(CLASS, class);
        }
    }
}

impl Usage {
    /// Octets are counted in 64 bits (RFC 2869, sections 5.1 and 5.2); time and packets saturate at the largest
    /// value of their attributes.
    fn write(&self, list: &mut List<'_>) {
        let bounded = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        list.integer(ACCT_SESSION_TIME, bounded(self.time_s));
        for (octets, low, high) in [
            (self.input_octets, ACCT_INPUT_OCTETS, ACCT_INPUT_GIGAWORDS),
            (
                self.output_octets,
                ACCT_OUTPUT_OCTETS,
                ACCT_OUTPUT_GIGAWORDS,
            ),
        ] {
            list.integer(low, octets as u32);
            if octets >> 32 > 0 {
                list.integer(high, (octets >> 32) as u32);
            }
        }
        list.integer(ACCT_INPUT_PACKETS, bounded(self.input_packets))
            .integer(ACCT_OUTPUT_PACKETS, bounded(self.output_packets));
        if let Some(queue) = &self.queue {
            let [drops, marks] = [queue.dropped, queue.marked]
                .map(|counts| counts.map(|count| bounded(count).to_be_bytes()));
            list.vendor_specific(
                queue.vendor,
                &[
                    (own::DROPS_DOWN, &drops[0]),
                    (own::DROPS_UP, &drops[1]),
                    (own::MARKS_DOWN, &marks[0]),
                    (own::MARKS_UP, &marks[1]),
                ],
            );
        }
    }
}
