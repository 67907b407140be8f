/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fixed point: Q32 is a number times 2^32. eBPF has no floating point and no signed division.
 */
#pragma once

#define Q32(number) ((u64)((number) * 4294967296.0))

/* a / b of two Q32, in Q32, for b below 2^24: to the last bit, in digits of 8 bits. */
ALWAYS_INLINE u64 ratio(u64 a, u64 b)
{
	u64 quotient = a / b, rest = a % b;

	for (int digit = 0; digit < 4; digit++) {
		rest <<= 8;
		quotient = quotient << 8 | rest / b;
		rest %= b;
	}
	return quotient;
}

/* a times b, both Q32, for a product below 2^31; b may be negative. */
ALWAYS_INLINE s64 times(u64 a, s64 b)
{
	s64 high = a >> 16 & 0xffff, low = a & 0xffff;

	return (s64)(a >> 32) * b + (high * b >> 16) + (low * b >> 32);
}

/* x times a fraction of small integers, rounded down. */
ALWAYS_INLINE u64 scaled(u64 x, u32 numerator, u32 denominator)
{
	return x / denominator * numerator + x % denominator * numerator / denominator;
}

/* The logarithm to base 2 of a whole number, in Q32. The error is below 2^-28. */
ALWAYS_INLINE u64 log2_q32(u64 x)
{
	u64 log = 0;

	EACH(step, 6) {
		u32 width = 32 >> step;

		if (x >> (log & 63) >> width)
			log += width;
	}
	/* The mantissa, from 1 to 2 in Q31, is squared for every binary digit of its logarithm. */
	x = x << (63 - (log & 63)) >> 32;
	EACH(digit, 32) {
		x = x * x >> 31;
		log = log << 1 | x >> 32;
		x >>= x >> 32 & 1;
	}
	return log;
}

/* 2 to the power of a Q32 below 31, in Q32: the series of e^x to the eleventh power. */
ALWAYS_INLINE u64 exp2_q32(u64 x)
{
	/* ln(2)^n / n! in Q32. */
	static const u64 terms[] = { 2977044472, 1031764991, 238388332, 41309550, 5726720, 661577,
				     65510,	 5676,	     437,	30,	  2 };
	u64 f = (u32)x, sum = 0;

	for (int n = 10; n >= 0; n--)
		sum = (sum + terms[n]) * f >> 32;
	return (sum + (1ULL << 32)) << (x >> 32);
}
