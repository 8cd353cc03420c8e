//! The settings of one stream, and the defaults for all streams.

use anyhow::{Context, Result, anyhow, bail};
use base::Duration;
use wire::flow::Dscp;

/// A stream whose host is still a name. A setting that is `None` takes the common default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Spec {
    pub(super) host: String,
    pub(super) name: Option<String>,
    pub(super) tos: Option<u8>,
    pub(super) size: Option<u16>,
    pub(super) interval: Option<Duration>,
    pub(super) count: Option<u64>,
    pub(super) udp: Option<u16>,
}

impl Spec {
    /// Parses `HOST[,KEY=VALUE]...`.
    ///
    /// # Errors
    /// The key, and what is wrong with its value.
    pub(super) fn parse(text: &str) -> Result<Spec> {
        let mut parts = text.split(',');
        let host = parts.next().unwrap_or_default();
        if host.is_empty() {
            bail!("{text:?}: a stream begins with a host");
        }
        let mut spec = Spec {
            host: host.to_owned(),
            ..Spec::default()
        };
        for part in parts {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| anyhow!("{text}: write KEY=VALUE, not {part:?}"))?;
            spec.set(key, value)
                .with_context(|| format!("{text}: {key}"))?;
        }
        Ok(spec)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match key {
            "name" if !value.is_empty() => self.name = Some(value.to_owned()),
            "tos" => self.tos = Some(tos(value)?),
            "dscp" => self.tos = Some(value.parse::<Dscp>()?.traffic_class()),
            "size" => self.size = Some(number(value)?),
            "interval" => self.interval = Some(seconds(value)?),
            "count" => self.count = Some(number(value)?),
            "udp" => self.udp = Some(port(value)?),
            "icmp" | "host" | "name" => bail!("cannot be set here"),
            _ => bail!("no such key: there are name, tos, dscp, size, interval, count and udp"),
        }
        Ok(())
    }
}

/// RFC 1349 2's names for the bits of a TOS octet; a packet had at most one set.
const TOS_NAMES: [(&str, u8); 5] = [
    ("lowdelay", 0x10),
    ("throughput", 0x08),
    ("reliability", 0x04),
    ("lowcost", 0x02),
    ("mincost", 0x02),
];

/// Parses a TOS octet as `ping -Q` takes it, a DSCP name, or a historic TOS name.
///
/// # Errors
/// The value is none of these.
pub fn tos(text: &str) -> Result<u8> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let digits = hex.unwrap_or(text);
    let radix = if hex.is_some() { 16 } else { 10 };
    if !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix)) {
        return u8::from_str_radix(digits, radix)
            .map_err(|_| anyhow!("TOS {text} is impossible: an octet is 0 to 255 (0xff)"));
    }
    let old = TOS_NAMES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(text));
    let dscp = || text.parse::<Dscp>().ok().map(Dscp::traffic_class);
    old.map(|(_, tos)| *tos).or_else(dscp).ok_or_else(|| {
        anyhow!(
            "no TOS {text:?}: write a number up to 255, a DSCP such as ef, af41, cs1 or be, or lowdelay, throughput, \
             reliability or lowcost"
        )
    })
}

/// The name of a TOS octet in stream names.
pub fn tos_name(tos: u8) -> String {
    match Dscp::of(tos).name() {
        Some(_) if tos == 0 => "be".to_owned(),
        Some(name) if tos & 3 == 0 => name.to_owned(),
        _ => format!("0x{tos:02x}"),
    }
}

/// Parses a duration in seconds, with or without a fraction, exact to the nanosecond.
///
/// # Errors
/// The text is not a duration.
pub fn seconds(text: &str) -> Result<Duration> {
    let wrong = || anyhow!("{text:?} is no number of seconds: write 1, 0.2 or 0.002");
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let are_digits = |part: &str| part.bytes().all(|octet| octet.is_ascii_digit());
    if !are_digits(whole) || !are_digits(fraction) || whole.len() + fraction.len() == 0 {
        return Err(wrong());
    }
    let whole: u64 = match whole {
        "" => 0,
        digits => digits.parse().map_err(|_| wrong())?,
    };
    let nanos: String = fraction
        .chars()
        .chain("000000000".chars())
        .take(9)
        .collect();
    let nanos: u64 = nanos.parse().map_err(|_| wrong())?;
    Ok(Duration::from_secs(whole) + Duration::from_nanos(nanos))
}

/// Parses a UDP port other than 0.
///
/// # Errors
/// The text is not a port.
pub(super) fn port(text: &str) -> Result<u16> {
    match text.parse() {
        Ok(0) | Err(_) => bail!("{text:?} is no port: write 1 to 65535"),
        Ok(port) => Ok(port),
    }
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N> {
    text.parse()
        .map_err(|_| anyhow!("{text:?} is no number that fits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_a_host_with_settings() {
        let spec = Spec::parse("::1,dscp=ef,size=500,interval=0.01,udp=9,count=3,name=v").unwrap();
        let expected = Spec {
            host: "::1".into(),
            name: Some("v".into()),
            tos: Some(0xb8),
            size: Some(500),
            interval: Some(Duration::from_millis(10)),
            count: Some(3),
            udp: Some(9),
        };
        assert_eq!(spec, expected);
        for (wrong, why) in [
            ("", "begins with a host"),
            (",tos=1", "begins with a host"),
            ("a,b", "KEY=VALUE"),
            ("a,tos=256", "impossible"),
            ("a,dscp=64", "no DSCP"),
            ("a,size=70000", "no number"),
            ("a,udp=0", "no port"),
            ("a,ttl=3", "no such key"),
        ] {
            let error = format!("{:#}", Spec::parse(wrong).unwrap_err());
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_tos_is_an_octet_or_a_name() {
        for (text, octet) in [
            ("0", 0),
            ("184", 184),
            ("0xb8", 184),
            ("0XFF", 255),
            ("ef", 184),
            ("EF", 184),
            ("cs1", 32),
            ("be", 0),
            ("le", 4),
            ("lowdelay", 0x10),
            ("Throughput", 8),
            ("mincost", 2),
        ] {
            assert_eq!(tos(text).unwrap(), octet, "{text}");
        }
        for wrong in ["256", "0x100", "", "0x", "-1", "+1", "1.5", "efx"] {
            assert!(tos(wrong).is_err(), "{wrong}");
        }
        let names = [0, 184, 32, 2, 185].map(tos_name);
        assert_eq!(names, ["be", "ef", "cs1", "0x02", "0xb9"]);
    }

    #[test]
    fn seconds_are_exact() {
        for (text, ns) in [
            ("1", 1_000_000_000),
            ("0.2", 200_000_000),
            (".01", 10_000_000),
            ("1.", 1_000_000_000),
            ("0.000000001", 1),
            ("0.0000000019", 1),
        ] {
            assert_eq!(seconds(text).unwrap().as_nanos(), ns, "{text}");
        }
        for wrong in ["", ".", "-1", "1e3", "1s", "99999999999999999999"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
