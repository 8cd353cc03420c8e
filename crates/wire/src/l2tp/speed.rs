//! The Connect Speed Update AVP: RFC 5515 6.1.

use super::header::Version;

/// The speeds of a session: RFC 5515 6.1. In a CSURQ both are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnectSpeed {
    /// Remote Session Id: the id that the receiver of the message assigned.
    pub session: u32,
    /// From the LAC to the remote system, in bit/s.
    pub tx_bps: u64,
    /// From the remote system to the LAC, in bit/s.
    pub rx_bps: u64,
}

impl ConnectSpeed {
    /// Octets of a value.
    #[must_use]
    pub const fn len(version: Version) -> usize {
        match version {
            Version::V2 => 12,
            Version::V3 => 20,
        }
    }

    /// Reads the AVP's value; `None` if its length is not the version's. Reserved octets are ignored.
    #[must_use]
    pub fn parse(version: Version, value: &[u8]) -> Option<Self> {
        match version {
            Version::V2 => {
                let [_, _, s0, s1, tx @ .., r0, r1, r2, r3] = *value.first_chunk::<12>()?;
                (value.len() == 12).then_some(Self {
                    session: u16::from_be_bytes([s0, s1]).into(),
                    tx_bps: u32::from_be_bytes(tx).into(),
                    rx_bps: u32::from_be_bytes([r0, r1, r2, r3]).into(),
                })
            }
            Version::V3 => {
                let (session, speeds) = value.split_first_chunk()?;
                let (tx, rx) = speeds.split_first_chunk()?;
                Some(Self {
                    session: u32::from_be_bytes(*session),
                    tx_bps: u64::from_be_bytes(*tx),
                    rx_bps: u64::from_be_bytes(rx.try_into().ok()?),
                })
            }
        }
    }

    /// Appends the AVP's value. Version 2 has 32 bits for a speed: a faster one is sent as the largest.
    pub fn emit(self, version: Version, out: &mut Vec<u8>) {
        match version {
            Version::V2 => {
                let narrow = |bps| u32::try_from(bps).unwrap_or(u32::MAX);
                out.extend_from_slice(&(self.session & 0xffff).to_be_bytes());
                out.extend_from_slice(&narrow(self.tx_bps).to_be_bytes());
                out.extend_from_slice(&narrow(self.rx_bps).to_be_bytes());
            }
            Version::V3 => {
                out.extend_from_slice(&self.session.to_be_bytes());
                out.extend_from_slice(&self.tx_bps.to_be_bytes());
                out.extend_from_slice(&self.rx_bps.to_be_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_have_formats_of_their_own() {
        let speed = ConnectSpeed {
            session: 0x0102,
            tx_bps: 100_000_000,
            rx_bps: 40_000_000,
        };
        for (version, len) in [(Version::V2, 12), (Version::V3, 20)] {
            let mut out = Vec::new();
            speed.emit(version, &mut out);
            assert_eq!((out.len(), ConnectSpeed::len(version)), (len, len));
            assert_eq!(ConnectSpeed::parse(version, &out), Some(speed));
            assert_eq!(ConnectSpeed::parse(version, &out[1..]), None);
            out.push(0);
            assert_eq!(ConnectSpeed::parse(version, &out), None);
        }
    }

    /// A gigabit fits into 32 bits; ten do not.
    #[test]
    fn a_speed_beyond_the_field_is_the_largest() {
        let speed = ConnectSpeed {
            session: 1,
            tx_bps: 10_000_000_000,
            rx_bps: 1_000_000_000,
        };
        let mut out = Vec::new();
        speed.emit(Version::V2, &mut out);
        let read = ConnectSpeed::parse(Version::V2, &out).unwrap();
        assert_eq!((read.tx_bps, read.rx_bps), (u32::MAX.into(), 1_000_000_000));
    }
}
