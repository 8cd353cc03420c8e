//! The numbers of the control messages: RFC 2661 3.2, RFC 3931 3.1, RFC 5515 4.

use super::header::Version;

/// The kind of a control message: RFC 2661 3.2, RFC 3931 3.1, RFC 5515 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageType {
    /// Start-Control-Connection-Request, 1.
    Sccrq,
    /// Start-Control-Connection-Reply, 2.
    Sccrp,
    /// Start-Control-Connection-Connected, 3.
    Scccn,
    /// Stop-Control-Connection-Notification, 4.
    StopCcn,
    /// Hello, 6.
    Hello,
    /// Outgoing-Call-Request, 7.
    Ocrq,
    /// Outgoing-Call-Reply, 8.
    Ocrp,
    /// Outgoing-Call-Connected, 9.
    Occn,
    /// Incoming-Call-Request, 10.
    Icrq,
    /// Incoming-Call-Reply, 11.
    Icrp,
    /// Incoming-Call-Connected, 12.
    Iccn,
    /// Call-Disconnect-Notify, 14.
    Cdn,
    /// WAN-Error-Notify, 15.
    Wen,
    /// Set-Link-Info, 16.
    Sli,
    /// Explicit-Acknowledgement, 20, of v3 only.
    Ack,
    /// Connect-Speed-Update-Notification, 28: RFC 5515 4.1.
    Csun,
    /// Connect-Speed-Update-Request, 29: RFC 5515 4.2.
    Csurq,
    /// Any other number: a vendor's message type, or 0 if there is none.
    Unknown(u16),
}

impl MessageType {
    /// The type that a number denotes in that version.
    #[must_use]
    pub fn from_number(version: Version, number: u16) -> Self {
        match number {
            1 => MessageType::Sccrq,
            2 => MessageType::Sccrp,
            3 => MessageType::Scccn,
            4 => MessageType::StopCcn,
            6 => MessageType::Hello,
            7 => MessageType::Ocrq,
            8 => MessageType::Ocrp,
            9 => MessageType::Occn,
            10 => MessageType::Icrq,
            11 => MessageType::Icrp,
            12 => MessageType::Iccn,
            14 => MessageType::Cdn,
            15 => MessageType::Wen,
            16 => MessageType::Sli,
            20 if version == Version::V3 => MessageType::Ack,
            28 => MessageType::Csun,
            29 => MessageType::Csurq,
            other => MessageType::Unknown(other),
        }
    }

    /// The value of the Message Type AVP.
    #[must_use]
    pub fn number(self) -> u16 {
        match self {
            MessageType::Sccrq => 1,
            MessageType::Sccrp => 2,
            MessageType::Scccn => 3,
            MessageType::StopCcn => 4,
            MessageType::Hello => 6,
            MessageType::Ocrq => 7,
            MessageType::Ocrp => 8,
            MessageType::Occn => 9,
            MessageType::Icrq => 10,
            MessageType::Icrp => 11,
            MessageType::Iccn => 12,
            MessageType::Cdn => 14,
            MessageType::Wen => 15,
            MessageType::Sli => 16,
            MessageType::Ack => 20,
            MessageType::Csun => 28,
            MessageType::Csurq => 29,
            MessageType::Unknown(number) => number,
        }
    }

    /// The M bit of the Message Type AVP that we send: a peer that does not know CSUN and CSURQ keeps the control
    /// connection (RFC 5515 4).
    #[must_use]
    pub fn mandatory(self) -> bool {
        !matches!(self, MessageType::Csun | MessageType::Csurq)
    }

    /// The RFC's abbreviation.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MessageType::Sccrq => "SCCRQ",
            MessageType::Sccrp => "SCCRP",
            MessageType::Scccn => "SCCCN",
            MessageType::StopCcn => "StopCCN",
            MessageType::Hello => "HELLO",
            MessageType::Ocrq => "OCRQ",
            MessageType::Ocrp => "OCRP",
            MessageType::Occn => "OCCN",
            MessageType::Icrq => "ICRQ",
            MessageType::Icrp => "ICRP",
            MessageType::Iccn => "ICCN",
            MessageType::Cdn => "CDN",
            MessageType::Wen => "WEN",
            MessageType::Sli => "SLI",
            MessageType::Ack => "ACK",
            MessageType::Csun => "CSUN",
            MessageType::Csurq => "CSURQ",
            MessageType::Unknown(_) => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_type_keeps_its_number() {
        for version in [Version::V2, Version::V3] {
            for number in 0..=u16::MAX {
                assert_eq!(MessageType::from_number(version, number).number(), number);
            }
        }
    }

    #[test]
    fn the_reserved_numbers_are_unknown() {
        for number in [0, 5, 13, 17, 18, 19, 21] {
            let kind = MessageType::from_number(Version::V3, number);
            assert_eq!(kind, MessageType::Unknown(number));
        }
    }
}
