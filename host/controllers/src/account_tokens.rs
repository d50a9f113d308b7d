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

/// The most bytes of a token that is kept, with what it is asked for: a Target names audiences as it likes, and the token has them.
const LONGEST_KEPT: usize = 8 << 10;
/// The most tokens that are kept.
const MOST_KEPT: usize = 2_048;

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

impl TokenKey {
    fn bytes(&self) -> usize {
        let of_account = |account: &ServiceAccountRef| account.namespace.len() + account.name.len();
        let audiences: usize = self.audiences.iter().map(String::len).sum();
        audiences + of_account(&self.account) + self.by.as_ref().map_or(0, of_account)
    }
}

impl Tokens {
    pub(crate) fn find(&self, wanted: &TokenKey, now: Timestamp) -> Option<String> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(wanted).filter(|token| now < token.renew).map(|token| token.text.clone())
    }

    /// Keeps a token. One that is long is asked for again whenever it is needed, and of too many the one leaves that would be renewed first.
    pub(crate) fn keep(&self, wanted: TokenKey, token: Token, now: Timestamp) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, token| now < token.renew);
        if wanted.bytes() + token.text.len() > LONGEST_KEPT {
            return;
        }
        kept.insert(wanted, token);
        if kept.len() > MOST_KEPT
            && let Some(first) = kept.iter().min_by_key(|(_, token)| token.renew).map(|(wanted, _)| wanted.clone())
        {
            kept.remove(&first);
        }
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

    #[test]
    fn c_286_limits_credentials_tokens_that_are_kept_have_a_number_and_a_length() {
        let tokens = Tokens::default();
        let keep = |wanted: TokenKey, length: usize, renew: i64| {
            tokens.keep(wanted, Token { text: "t".repeat(length), renew: at(renew) }, at(0));
        };
        let long = TokenKey { audiences: vec!["x".repeat(LONGEST_KEPT - 10)], ..wanted("a") };
        keep(long.clone(), 8, 90);
        keep(wanted("b"), LONGEST_KEPT, 90);
        assert_eq!((tokens.find(&long, at(1)), tokens.find(&wanted("b"), at(1))), (None, None));
        (0..=MOST_KEPT).for_each(|number| keep(wanted(&number.to_string()), 1, 100 + i64::try_from(number).unwrap()));
        let kept = |number: usize| tokens.find(&wanted(&number.to_string()), at(1)).is_some();
        assert_eq!(
            (kept(0), kept(1), kept(MOST_KEPT)),
            (false, true, true),
            "that which would be renewed first has left"
        );
    }

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
