//! Addresses of NBD servers, as their tools write them: `nbd://HOST[:PORT]/EXPORT`, `nbd+unix:///EXPORT?socket=PATH`.

use std::path::PathBuf;

/// The port of servers that say none.
const PORT: u16 = 10809;

/// Where a server listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Host and port.
    Tcp(String, u16),
    /// A socket of this machine.
    Unix(PathBuf),
}

/// An export of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NbdUrl {
    pub place: Place,
    pub export: String,
}

impl NbdUrl {
    /// Takes `text` apart; the error says what would be right.
    pub fn parse(text: &str) -> Result<NbdUrl, String> {
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
        // The colons of an address in brackets are its own.
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (authority, PORT),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    (!host.is_empty()).then(|| Place::Tcp(host.to_string(), port))
}

/// `text` with `%20` and its like replaced.
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
