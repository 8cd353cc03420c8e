//! The table of all attributes: RFC 2661 4.4, RFC 3931 5.4, RFC 3145 2 and RFC 5515 6, vendor 0.
//!
//! A row holds what the RFCs specify for an attribute: its number, whether its M bit is set when we send it,
//! whether it may be hidden, and the length of its value. An attribute that RFC 3931 renamed keeps its RFC 2661
//! name here.

use super::avp::VALUE_LEN_MAX;
use super::header::Version;

/// How the M bit of an attribute is sent in one version; [`Rule::No`] if that version does not define the
/// attribute.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Not defined.
    No,
    /// Sent with M = 0.
    M0,
    /// Sent with M = 1.
    M1,
}

struct Row {
    number: u16,
    name: &'static str,
    v2: Rule,
    v3: Rule,
    may_hide: bool,
    min: u16,
    max: u16,
    sections: &'static str,
}

const ANY: u16 = VALUE_LEN_MAX as u16;

macro_rules! attributes {
    ($($variant:ident $number:literal $name:literal $v2:ident $v3:ident $hide:literal $min:literal $max:tt $sections:literal;)*) => {
        /// An attribute that RFC 2661, RFC 3931, RFC 3145 or RFC 5515 defines.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Attribute {
            $(#[doc = concat!($name, ", attribute type ", stringify!($number), ": ", $sections, ".")] $variant,)*
        }

        /// Every attribute, by ascending number; an attribute's index here is its discriminant.
        const ALL: &[Attribute] = &[$(Attribute::$variant,)*];

        const ROWS: [Row; ALL.len()] = [$(Row {
            number: $number,
            name: $name,
            v2: Rule::$v2,
            v3: Rule::$v3,
            may_hide: $hide,
            min: $min,
            max: $max,
            sections: $sections,
        },)*];
    };
}

// Columns: attribute, number, name, M bit in v2, M bit in v3, may be hidden, minimum and maximum value length
// in octets, defining sections.
attributes! {
    MessageType 0 "Message Type" M1 M1 false 2 2 "RFC 2661 4.4.1, RFC 3931 5.4.1";
    ResultCode 1 "Result Code" M1 M1 false 2 ANY "RFC 2661 4.4.2, RFC 3931 5.4.2";
    ProtocolVersion 2 "Protocol Version" M1 No false 2 2 "RFC 2661 4.4.3";
    FramingCapabilities 3 "Framing Capabilities" M1 No true 4 4 "RFC 2661 4.4.3";
    BearerCapabilities 4 "Bearer Capabilities" M1 No true 4 4 "RFC 2661 4.4.3";
    TieBreaker 5 "Tie Breaker" M0 M1 false 8 8 "RFC 2661 4.4.3, RFC 3931 5.4.3 and 5.4.4";
    FirmwareRevision 6 "Firmware Revision" M0 No true 2 2 "RFC 2661 4.4.3";
    HostName 7 "Host Name" M1 M1 false 1 ANY "RFC 2661 4.4.3, RFC 3931 5.4.3";
    VendorName 8 "Vendor Name" M0 M0 true 0 ANY "RFC 2661 4.4.3, RFC 3931 5.4.3";
    AssignedTunnelId 9 "Assigned Tunnel ID" M1 No true 2 2 "RFC 2661 4.4.3";
    ReceiveWindowSize 10 "Receive Window Size" M1 M1 false 2 2 "RFC 2661 4.4.3, RFC 3931 5.4.3";
    Challenge 11 "Challenge" M1 No true 1 ANY "RFC 2661 4.4.3";
    Q931CauseCode 12 "Q.931 Cause Code" M1 No false 3 ANY "RFC 2661 4.4.4";
    ChallengeResponse 13 "Challenge Response" M1 No true 16 16 "RFC 2661 4.4.3";
    AssignedSessionId 14 "Assigned Session ID" M1 No true 2 2 "RFC 2661 4.4.4";
    CallSerialNumber 15 "Call Serial Number" M1 M0 true 4 4 "RFC 2661 4.4.4, RFC 3931 5.4.4";
    MinimumBps 16 "Minimum BPS" M1 No true 4 4 "RFC 2661 4.4.4";
    MaximumBps 17 "Maximum BPS" M1 No true 4 4 "RFC 2661 4.4.4";
    BearerType 18 "Bearer Type" M1 No true 4 4 "RFC 2661 4.4.4";
    FramingType 19 "Framing Type" M1 No true 4 4 "RFC 2661 4.4.4";
    CalledNumber 21 "Called Number" M1 No true 0 ANY "RFC 2661 4.4.4";
    CallingNumber 22 "Calling Number" M1 No true 0 ANY "RFC 2661 4.4.4";
    SubAddress 23 "Sub-Address" M1 No true 0 ANY "RFC 2661 4.4.4";
    TxConnectSpeed 24 "(Tx) Connect Speed" M1 No true 4 4 "RFC 2661 4.4.4";
    PhysicalChannelId 25 "Physical Channel ID" M0 M0 true 4 4 "RFC 2661 4.4.4, RFC 3931 5.4.4";
    InitialReceivedLcpConfreq 26 "Initial Received LCP CONFREQ" M0 No true 0 ANY "RFC 2661 4.4.5";
    LastSentLcpConfreq 27 "Last Sent LCP CONFREQ" M0 No true 0 ANY "RFC 2661 4.4.5";
    LastReceivedLcpConfreq 28 "Last Received LCP CONFREQ" M0 No true 0 ANY "RFC 2661 4.4.5";
    ProxyAuthenType 29 "Proxy Authen Type" M0 No true 2 2 "RFC 2661 4.4.5";
    ProxyAuthenName 30 "Proxy Authen Name" M0 No true 0 ANY "RFC 2661 4.4.5";
    ProxyAuthenChallenge 31 "Proxy Authen Challenge" M0 No true 1 ANY "RFC 2661 4.4.5";
    ProxyAuthenId 32 "Proxy Authen ID" M0 No true 2 2 "RFC 2661 4.4.5";
    ProxyAuthenResponse 33 "Proxy Authen Response" M0 No true 0 ANY "RFC 2661 4.4.5";
    CallErrors 34 "Call Errors" M1 M0 true 18 26 "RFC 2661 4.4.6, RFC 3931 5.4.5";
    Accm 35 "ACCM" M1 No true 10 10 "RFC 2661 4.4.6";
    RandomVector 36 "Random Vector" M1 M1 false 0 ANY "RFC 2661 4.4.1, RFC 3931 5.4.1";
    PrivateGroupId 37 "Private Group ID" M0 No true 0 ANY "RFC 2661 4.4.4";
    RxConnectSpeed 38 "Rx Connect Speed" M0 No true 4 4 "RFC 2661 4.4.4";
    SequencingRequired 39 "Sequencing Required" M1 No false 0 0 "RFC 2661 4.4.4";
    PppDisconnectCauseCode 46 "PPP Disconnect Cause Code" M0 M0 true 5 ANY "RFC 3145 2";
    ExtendedVendorId 58 "Extended Vendor ID" No M0 true 6 ANY "RFC 3931 5.1";
    MessageDigest 59 "Message Digest" No M1 false 17 ANY "RFC 3931 5.4.1";
    RouterId 60 "Router ID" No M1 false 4 4 "RFC 3931 5.4.3";
    AssignedControlConnectionId 61 "Assigned Control Connection ID" No M1 true 4 4 "RFC 3931 5.4.3";
    PseudowireCapabilitiesList 62 "Pseudowire Capabilities List" No M1 true 2 ANY "RFC 3931 5.4.3";
    LocalSessionId 63 "Local Session ID" No M1 true 4 4 "RFC 3931 5.4.4";
    RemoteSessionId 64 "Remote Session ID" No M1 true 4 4 "RFC 3931 5.4.4";
    AssignedCookie 65 "Assigned Cookie" No M1 true 0 8 "RFC 3931 5.4.4";
    RemoteEndId 66 "Remote End ID" No M1 true 0 ANY "RFC 3931 5.4.4";
    PseudowireType 68 "Pseudowire Type" No M1 true 2 2 "RFC 3931 5.4.4";
    L2SpecificSublayer 69 "L2-Specific Sublayer" No M1 true 2 2 "RFC 3931 5.4.4";
    DataSequencing 70 "Data Sequencing" No M1 true 2 2 "RFC 3931 5.4.4";
    CircuitStatus 71 "Circuit Status" No M1 true 2 2 "RFC 3931 5.4.5";
    PreferredLanguage 72 "Preferred Language" No M0 true 0 ANY "RFC 3931 5.4.3";
    ControlMessageAuthenticationNonce 73 "Control Message Authentication Nonce" No M1 false 1 ANY "RFC 3931 5.4.1";
    TxConnectSpeedBps 74 "Tx Connect Speed BPS" No M0 true 8 8 "RFC 3931 5.4.4";
    RxConnectSpeedBps 75 "Rx Connect Speed BPS" No M0 true 8 8 "RFC 3931 5.4.4";
    ConnectSpeedUpdate 97 "Connect Speed Update" M0 M0 true 12 20 "RFC 5515 6.1";
    ConnectSpeedUpdateEnable 98 "Connect Speed Update Enable" M0 M0 true 0 0 "RFC 5515 6.2";
}

/// The number of attributes in the table.
pub(super) const COUNT: usize = ALL.len();

const NUMBER_MAX: usize = 98;

/// Maps a number to an index in [`ALL`], 0xff if unassigned.
const BY_NUMBER: [u8; NUMBER_MAX + 1] = {
    let mut places = [0xff; NUMBER_MAX + 1];
    let mut i = 0;
    while i < COUNT {
        places[ROWS[i].number as usize] = i as u8;
        i += 1;
    }
    places
};

impl Attribute {
    /// Every attribute, by ascending number.
    #[must_use]
    pub fn all() -> &'static [Attribute] {
        ALL
    }

    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// The Attribute Type field.
    #[must_use]
    pub fn number(self) -> u16 {
        self.row().number
    }

    /// The attribute with that number under vendor 0, in whichever version defines it.
    #[must_use]
    #[inline]
    pub fn from_number(number: u16) -> Option<Self> {
        let place = *BY_NUMBER.get(usize::from(number))?;
        ALL.get(usize::from(place)).copied()
    }

    /// The RFC's name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The sections that define it.
    #[must_use]
    pub fn sections(self) -> &'static str {
        self.row().sections
    }

    /// Whether that version's RFC defines it.
    #[must_use]
    #[inline]
    pub fn defined_in(self, version: Version) -> bool {
        self.rule(version) != Rule::No
    }

    /// The M bit that we send. An attribute that the version does not define is sent with M = 0, as RFC 3931
    /// 4.7.3 requires for v3 attributes in a v2 SCCRQ. A receiver ignores the M bit of attributes it knows.
    #[must_use]
    pub fn mandatory(self, version: Version) -> bool {
        self.rule(version) == Rule::M1
    }

    fn rule(self, version: Version) -> Rule {
        match version {
            Version::V2 => self.row().v2,
            Version::V3 => self.row().v3,
        }
    }

    /// Whether the H bit may be set.
    #[must_use]
    pub fn may_hide(self) -> bool {
        self.row().may_hide
    }

    /// The minimum and maximum length of the value, in octets, before hiding.
    #[must_use]
    pub fn value_len(self) -> (usize, usize) {
        let row = self.row();
        (usize::from(row.min), usize::from(row.max))
    }

    /// Whether a value of `len` octets is valid in that version: within [`Attribute::value_len`] and, for the
    /// few attributes with gaps in that range, one of the RFC's lengths.
    #[must_use]
    #[inline]
    pub fn allows_len(self, version: Version, len: usize) -> bool {
        let (min, max) = self.value_len();
        let listed = match self {
            // An Error Code has two octets or is absent.
            Attribute::ResultCode => len != 3,
            // RFC 3931 5.4.5 states the length of RFC 2661, but its diagram is shorter.
            Attribute::CallErrors => len == 26 || (len == 18 && version == Version::V3),
            Attribute::PseudowireCapabilitiesList => len.is_multiple_of(2),
            Attribute::AssignedCookie => matches!(len, 0 | 4 | 8),
            Attribute::ConnectSpeedUpdate => match version {
                Version::V2 => len == 12,
                Version::V3 => len == 20,
            },
            _ => true,
        };
        listed && min <= len && len <= max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_numbers() {
        assert!(ROWS.windows(2).all(|pair| pair[0].number < pair[1].number));
        assert_eq!(usize::from(ROWS[COUNT - 1].number), NUMBER_MAX);
    }

    #[test]
    fn a_number_finds_its_attribute() {
        let mut found = 0;
        for number in 0..=u16::MAX {
            if let Some(attribute) = Attribute::from_number(number) {
                assert_eq!(attribute.number(), number);
                found += 1;
            }
        }
        assert_eq!(found, COUNT);
    }

    /// The attributes for which RFC 2661 4.4 and RFC 3931 5.4 say "This AVP MUST NOT be hidden", or "may not be
    /// hidden" for the Message Type.
    #[test]
    fn what_the_rfcs_forbid_to_hide_may_not_be_hidden() {
        let forbidden = [0, 1, 2, 5, 7, 10, 12, 36, 39, 59, 60, 73];
        for &attribute in Attribute::all() {
            assert_eq!(
                attribute.may_hide(),
                !forbidden.contains(&attribute.number())
            );
        }
    }

    #[test]
    fn both_rfcs_define_ten_attributes_in_common_and_two_later_ones_three_more() {
        let in_both: Vec<u16> = Attribute::all()
            .iter()
            .filter(|a| a.defined_in(Version::V2) && a.defined_in(Version::V3))
            .map(|a| a.number())
            .collect();
        let later = [46, 97, 98];
        let first = [0, 1, 5, 7, 8, 10, 15, 25, 34, 36];
        assert_eq!(in_both, [&first[..], &later].concat());
    }

    #[test]
    fn an_attribute_of_the_other_version_is_never_mandatory() {
        assert!(!Attribute::RouterId.mandatory(Version::V2));
        assert!(Attribute::RouterId.mandatory(Version::V3));
        assert!(!Attribute::AssignedTunnelId.mandatory(Version::V3));
    }

    #[test]
    fn lengths_with_gaps_are_the_rfcs_lists() {
        let lens = |attribute: Attribute, version| {
            (0..30)
                .filter(|len| attribute.allows_len(version, *len))
                .collect::<Vec<_>>()
        };
        assert_eq!(lens(Attribute::AssignedCookie, Version::V3), [0, 4, 8]);
        assert_eq!(lens(Attribute::CallErrors, Version::V2), [26]);
        assert_eq!(lens(Attribute::CallErrors, Version::V3), [18, 26]);
        assert_eq!(lens(Attribute::ConnectSpeedUpdate, Version::V2), [12]);
        assert_eq!(lens(Attribute::ConnectSpeedUpdate, Version::V3), [20]);
        assert_eq!(lens(Attribute::ResultCode, Version::V2)[..3], [2, 4, 5]);
        assert_eq!(
            lens(Attribute::PseudowireCapabilitiesList, Version::V3)[..3],
            [2, 4, 6]
        );
    }
}
