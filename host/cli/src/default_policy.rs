//! The flag `--default-policy`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use orangery_policy::Profile;

/// The profiles, by their names.
pub(crate) fn profile() -> impl TypedValueParser<Value = Profile> {
    PossibleValuesParser::new(Profile::ALL.map(Profile::name)).map(|name| name.parse().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[arg(long, value_parser = profile())]
        default_policy: Profile,
    }

    #[test]
    fn the_default_policy_is_one_of_the_profiles() {
        let read = |word: &str| Line::try_parse_from(["x", "--default-policy", word]).map(|line| line.default_policy);
        assert_eq!(read("restricted").unwrap(), Profile::Restricted);
        assert_eq!(read("compatible").unwrap(), Profile::Compatible);
        assert_eq!(read("none").unwrap_err().kind(), clap::error::ErrorKind::InvalidValue);
    }
}
