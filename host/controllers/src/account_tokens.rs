//! Tokens of service accounts of this cluster, kept as long as they are good.

use std::{
    collections::BTreeMap,
    sync::{Mutex, OnceLock, PoisonError},
};

use jiff::Timestamp;

use crate::acting_account::ServiceAccountRef;

/// How this cluster is reached from outside of the operator's connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnAddress {
    /// `https://…`
    pub server: String,
    /// The certificate authorities as PEM in base64; `None` for those of the machine.
    pub authority: Option<String>,
}

/// Tokens that were asked for, until four fifths of their life are over.
#[derive(Default)]
pub(crate) struct Tokens {
    /// Held for one look-up or one change, never across an await.
    kept: Mutex<BTreeMap<TokenKey, Token>>,
    /// The audiences of this cluster's own API server, once they are known.
    own_audiences: OnceLock<Vec<String>>,
}

/// What a token is asked for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TokenKey {
    /// Whose token.
    pub(crate) account: ServiceAccountRef,
    /// The account that asks; `None` for the operator.
    pub(crate) by: Option<ServiceAccountRef>,
    pub(crate) audiences: Vec<String>,
    pub(crate) seconds: i64,
}

/// A token, and when another one is asked for.
#[derive(Clone)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) renew: Timestamp,
}

impl Tokens {
    pub(crate) fn find(&self, wanted: &TokenKey, now: Timestamp) -> Option<String> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(wanted).filter(|token| now < token.renew).map(|token| token.text.clone())
    }

    pub(crate) fn keep(&self, wanted: TokenKey, token: Token, now: Timestamp) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, token| now < token.renew);
        kept.insert(wanted, token);
    }

    pub(crate) fn own_audiences(&self) -> Option<&[String]> {
        self.own_audiences.get().map(Vec::as_slice)
    }

    pub(crate) fn keep_own_audiences(&self, audiences: Vec<String>) -> &[String] {
        self.own_audiences.get_or_init(|| audiences)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn wanted(account: &str) -> TokenKey {
        let account = ServiceAccountRef { namespace: "ns".into(), name: account.into() };
        TokenKey { account, by: None, audiences: Vec::new(), seconds: 100 }
    }

    #[test]
    fn a_token_is_kept_until_it_is_to_be_renewed_and_forgotten_after_that() {
        let tokens = Tokens::default();
        tokens.keep(wanted("a"), Token { text: "t".to_owned(), renew: at(80) }, at(0));
        assert_eq!(tokens.find(&wanted("a"), at(79)), Some("t".to_owned()));
        assert_eq!(tokens.find(&wanted("a"), at(80)), None);
        assert_eq!(tokens.find(&wanted("b"), at(0)), None);
        tokens.keep(wanted("b"), Token { text: "u".to_owned(), renew: at(180) }, at(90));
        assert_eq!(tokens.kept.lock().unwrap().len(), 1);
    }
}
