//! Bands of priority by DSCP.
//!
//! RFC 2474 (the DS field), RFC 3168 (its last two bits are ECN's and never choose a band), RFC 3246 (EF), RFC 5865
//! (VOICE-ADMIT), RFC 8622 (lower effort), RFC 4594 (CS6, CS7, CS1).

/// Which band a packet belongs to, by the upper six bits of its TOS octet or traffic class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bands([u8; 64]);

impl Bands {
    /// The Linux kernel's reading, by the bits of RFC 1349. Low delay is band 0; high throughput is band 2; both or
    /// neither is band 1. Expedited forwarding is in band 1.
    pub const LINUX: Self = {
        let mut bands = [0; 64];
        let mut dscp = 0;
        while dscp < 64 {
            bands[dscp] = [1, 2, 0, 1][(dscp >> 1) & 3];
            dscp += 1;
        }
        Self(bands)
    };

    /// The reading of differentiated services: EF, VOICE-ADMIT, CS6 and CS7 are band 0, CS1 and LE band 2, all else
    /// band 1.
    pub const DSCP: Self = {
        let mut bands = [1; 64];
        bands[46] = 0;
        bands[44] = 0;
        bands[48] = 0;
        bands[56] = 0;
        bands[8] = 2;
        bands[1] = 2;
        Self(bands)
    };

    /// A custom table: `bands[dscp]`.
    #[must_use]
    pub const fn new(bands: [u8; 64]) -> Self {
        Self(bands)
    }

    /// The band of a packet with this TOS octet or traffic class.
    #[must_use]
    #[inline]
    pub const fn band(&self, traffic_class: u8) -> u8 {
        self.0[(traffic_class >> 2) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_of_ecn_choose_no_band() {
        for bands in [Bands::LINUX, Bands::DSCP] {
            for octet in 0..=255u8 {
                assert_eq!(bands.band(octet), bands.band(octet & 0xfc), "{octet:#x}");
            }
        }
    }

    #[test]
    fn the_kernel_s_table_repeats_its_four_rows() {
        for octet in 0..=255u8 {
            let expected = match octet & 0x1f {
                0x00..=0x07 => 1,
                0x08..=0x0f => 2,
                0x10..=0x17 => 0,
                _ => 1,
            };
            assert_eq!(Bands::LINUX.band(octet), expected, "{octet:#x}");
        }
    }

    #[test]
    fn differentiated_services_put_voice_and_control_first_and_scavengers_last() {
        for dscp in 0..64u8 {
            let expected = match dscp {
                44 | 46 | 48 | 56 => 0,
                1 | 8 => 2,
                _ => 1,
            };
            assert_eq!(Bands::DSCP.band(dscp << 2), expected, "{dscp}");
        }
    }
}
