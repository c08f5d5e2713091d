//! Addresses of NBD servers, in the form that NBD tools use: `nbd://HOST[:PORT]/EXPORT`,
//! `nbd+unix:///EXPORT?socket=PATH`.

use std::path::PathBuf;

/// Port of an address that names none.
const PORT: u16 = 10809;

/// The address at which a server listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Host and port.
    Tcp(String, u16),
    /// Path of a Unix socket.
    Unix(PathBuf),
}

/// The address of an export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NbdUrl {
    /// Address of the server: host and port, or the path of a Unix socket.
    pub place: Place,
    /// Name of the export, with percent codes replaced; empty for the server's default export.
    pub export: String,
}

impl NbdUrl {
    /// Parses `text`; the error describes the expected form.
    pub(super) fn parse(text: &str) -> Result<NbdUrl, String> {
        let wrong = || "expected nbd://HOST[:PORT]/EXPORT or nbd+unix:///EXPORT?socket=PATH".to_string();
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, export) = rest.split_once('/').unwrap_or((rest, ""));
        let export = decoded(export).ok_or_else(wrong)?;
        match scheme {
            "nbd" => Ok(NbdUrl { place: tcp(authority).ok_or_else(wrong)?, export }),
            "nbd+unix" if authority.is_empty() => {
                let socket = query.split('&').find_map(|pair| pair.strip_prefix("socket="));
                let socket = socket.and_then(decoded).filter(|path| !path.is_empty()).ok_or_else(wrong)?;
                Ok(NbdUrl { place: Place::Unix(socket.into()), export })
            }
            "nbds" | "nbds+unix" => Err("TLS is not spoken here; serve it at a Unix socket or to this machine".into()),
            _ => Err(wrong()),
        }
    }
}

fn tcp(authority: &str) -> Option<Place> {
    let (host, port) = match authority.rsplit_once(':') {
        // A colon within brackets belongs to an IPv6 address.
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (authority, PORT),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    (!host.is_empty()).then(|| Place::Tcp(host.to_string(), port))
}

/// Replaces percent codes such as `%20` in `text`; returns nothing if a code or the result is invalid.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok())?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        for (text, place, export) in [
            ("nbd://host", Place::Tcp("host".into(), 10809), ""),
            ("nbd://host:99/a%20b", Place::Tcp("host".into(), 99), "a b"),
            ("nbd://[::1]:99/x", Place::Tcp("::1".into(), 99), "x"),
            ("nbd://[::1]", Place::Tcp("::1".into(), 10809), ""),
            ("nbd+unix:///x?socket=/tmp/s%3f", Place::Unix("/tmp/s?".into()), "x"),
            ("nbd+unix:///?tls=no&socket=s", Place::Unix("s".into()), ""),
        ] {
            assert_eq!(NbdUrl::parse(text), Ok(NbdUrl { place, export: export.into() }), "{text}");
        }
    }

    #[test]
    fn what_is_none_is_refused_in_words() {
        for text in [
            "nbd://",
            "nbd://:5",
            "nbd://host:port",
            "nbd+unix:///x",
            "nbd+unix:///?socket=",
            "nbd:unix",
            "nbd://h/%zz",
        ] {
            assert!(NbdUrl::parse(text).expect_err(text).contains("expected nbd://"), "{text}");
        }
        assert!(NbdUrl::parse("nbds://host").expect_err("TLS").contains("TLS"));
    }
}
