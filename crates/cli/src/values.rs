//! Parsers for the values of flags.

use std::net::{IpAddr, SocketAddr};

/// L2TP's registered port (RFC 2661 8.1).
const PORT: u16 = 1701;

/// A peer: an address, with L2TP's port unless the text has one.
pub fn peer(text: &str) -> Result<SocketAddr, String> {
    if let Ok(addr) = text.parse::<SocketAddr>() {
        return Ok(addr);
    }
    match text
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>()
    {
        Ok(ip) => Ok(SocketAddr::new(ip, PORT)),
        Err(_) => {
            Err("write an IP address, or one with a port: 192.0.2.1 or [2001:db8::1]:1701".into())
        }
    }
}

/// A time-out in seconds, whole or with a fraction.
pub fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let wrong = || "write a number of seconds above 0, such as 30 or 0.5".to_string();
    let number: f64 = text.parse().map_err(|_| wrong())?;
    if !(number > 0.0 && number <= 1e6) {
        return Err(wrong());
    }
    Ok(std::time::Duration::from_secs_f64(number))
}
