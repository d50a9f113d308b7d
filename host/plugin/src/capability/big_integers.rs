//! `big-integers` of `orangery:deployer` and `orangery:template`: arithmetic of keys, on the processor time of the guest.
//!
//! It is computed where the guest runs, in its worker: no other process learns of it, and the worker is stopped as ever.

use crypto_bigint::{
    BoxedUint, Odd,
    modular::{BoxedMontyForm, BoxedMontyParams},
};
use wasmtime::component::{HasData, Linker};

use crate::{
    bindings::{deployer::orangery::deployer as of_deployers, template::orangery::template as of_templates},
    meter::{Meter, Metered},
};

/// Bytes of a modulus, and of an exponent: those of an RSA key of 4096 bits, or of a prime of one of 8192.
const MOST_NUMBER_BYTES: usize = 512;

/// What `big-integers` can see of a guest.
struct BigIntegersView<'a>(&'a mut Meter);

struct HasBigIntegers;

impl HasData for HasBigIntegers {
    type Data<'a> = BigIntegersView<'a>;
}

fn view<T: Metered>(guest: &mut T) -> BigIntegersView<'_> {
    BigIntegersView(guest.meter())
}

pub(crate) fn add_to_linker<T: Metered + Send + 'static>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    of_deployers::big_integers::add_to_linker::<T, HasBigIntegers>(linker, view)?;
    of_templates::big_integers::add_to_linker::<T, HasBigIntegers>(linker, view)
}

type Power = wasmtime::Result<Result<Vec<u8>, String>>;

impl of_deployers::big_integers::Host for BigIntegersView<'_> {
    async fn modular_power(&mut self, base: Vec<u8>, exponent: Vec<u8>, modulus: Vec<u8>) -> Power {
        Ok(self.0.compute(|| modular_power(&base, &exponent, &modulus))?)
    }
}

impl of_templates::big_integers::Host for BigIntegersView<'_> {
    async fn modular_power(&mut self, base: Vec<u8>, exponent: Vec<u8>, modulus: Vec<u8>) -> Power {
        Ok(self.0.compute(|| modular_power(&base, &exponent, &modulus))?)
    }
}

/// The power of a number modulo another, all with the highest byte first; the answer is as long as the modulus.
fn modular_power(base: &[u8], exponent: &[u8], modulus: &[u8]) -> Result<Vec<u8>, String> {
    if modulus.len().max(exponent.len()) > MOST_NUMBER_BYTES {
        return Err(format!(
            "a modulus of {} bytes and an exponent of {} are asked for, and each may have {MOST_NUMBER_BYTES}; compute greater powers in the component",
            modulus.len(),
            exponent.len()
        ));
    }
    if base.len() > modulus.len() {
        return Err(format!(
            "the base has {} bytes, and its modulus has {}; reduce it first",
            base.len(),
            modulus.len()
        ));
    }
    let odd = Odd::new(BoxedUint::from_be_slice_vartime(modulus)).into_option();
    let odd = odd.ok_or_else(|| "the modulus is even; compute such a power in the component".to_owned())?;
    let base = BoxedUint::from_be_slice_truncated(base, odd.bits_precision()).rem(odd.as_nz_ref());
    let exponent = BoxedUint::from_be_slice_vartime(exponent);
    let power = BoxedMontyForm::new(base, &BoxedMontyParams::new(odd)).pow(&exponent).retrieve().to_be_bytes();
    Ok(power.iter().skip(power.len().saturating_sub(modulus.len())).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The power of small numbers, by multiplying.
    fn multiplied(base: u64, exponent: u64, modulus: u64) -> u64 {
        (0..exponent).fold(1 % modulus, |power, _| power * base % modulus)
    }

    #[test]
    fn c_394_powers_are_what_multiplying_makes_of_them() {
        for (base, exponent, modulus) in
            [(0, 0, 1), (2, 5, 1), (0, 3, 7), (6, 0, 7), (7, 2, 7), (255, 3, 7), (3, 200, 255)]
        {
            let power = modular_power(&[base], &[exponent], &[modulus]).unwrap();
            let expected = multiplied(base.into(), exponent.into(), modulus.into());
            assert_eq!(
                power.iter().map(|byte| u64::from(*byte)).collect::<Vec<_>>(),
                [expected],
                "{base} {exponent} {modulus}"
            );
        }
        let long = modular_power(&[0, 0, 3], &[0, 2], &[0, 0, 0, 0, 0, 0, 0, 0, 0, 7]).unwrap();
        assert_eq!(long, [0, 0, 0, 0, 0, 0, 0, 0, 0, 2], "as long as the modulus, whatever it begins with");
        assert_eq!(modular_power(&[], &[], &[3]).unwrap(), [1], "no bytes are zero");
    }

    #[test]
    fn c_394_a_power_of_a_prime_less_one_is_one() {
        // Fermat: 2^521 - 1 is prime.
        let mut prime = vec![0xff; 66];
        prime[0] = 0x01;
        let mut less = prime.clone();
        less[65] = 0xfe;
        let mut one = vec![0; 66];
        one[65] = 1;
        assert_eq!(modular_power(&[0xab; 65], &less, &prime).unwrap(), one);
    }

    #[test]
    fn c_394_limits_components_numbers_have_so_many_bytes() {
        let most = vec![0xff; MOST_NUMBER_BYTES];
        assert_eq!(modular_power(&most, &most, &most).unwrap(), vec![0; MOST_NUMBER_BYTES]);
        let beyond = vec![0xff; MOST_NUMBER_BYTES + 1];
        let whys = [
            modular_power(&[1], &[1], &beyond),
            modular_power(&[1], &beyond, &[3]),
            modular_power(&[1, 1], &[1], &[3]),
            modular_power(&[1], &[1], &[4]),
            modular_power(&[], &[1], &[]),
        ];
        let even = "the modulus is even; compute such a power in the component";
        let expected = [
            "a modulus of 513 bytes and an exponent of 1 are asked for, and each may have 512; compute greater powers in the component",
            "a modulus of 1 bytes and an exponent of 513 are asked for, and each may have 512; compute greater powers in the component",
            "the base has 2 bytes, and its modulus has 1; reduce it first",
            even,
            even,
        ];
        assert_eq!(whys.map(Result::unwrap_err), expected);
    }
}
