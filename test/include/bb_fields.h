/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Bluebell authors
 */
/*
 * Asserts fields of one object, with the field's name and both values in the message:
 *
 *     assert_fields(wc[0], wr_id, 3, status, BB_WC_SUCCESS);
 *
 * Takes 1 to 6 pairs. A path is a field too: assert_fields(*f, n_done, 1, done[0].len, 4).
 */
#ifndef BB_FIELDS_H
#define BB_FIELDS_H

static inline void
bb_field_equal(const char *name, LargestIntegralType got, LargestIntegralType want,
	       const char *file, int line)
{
	if (got == want)
		return;
	print_error("%s: 0x%llx, expected 0x%llx\n", name, (unsigned long long)got,
		    (unsigned long long)want);
	_fail(file, line);
}

#define BB_FIELD_1(o_, f_, v_)                                                                     \
	bb_field_equal(#o_ ", " #f_, cast_to_largest_integral_type((o_).f_),                       \
		       cast_to_largest_integral_type(v_), __FILE__, __LINE__)
#define BB_FIELD_2(o_, f_, v_, ...) BB_FIELD_1(o_, f_, v_), BB_FIELD_1(o_, __VA_ARGS__)
#define BB_FIELD_3(o_, f_, v_, ...) BB_FIELD_1(o_, f_, v_), BB_FIELD_2(o_, __VA_ARGS__)
#define BB_FIELD_4(o_, f_, v_, ...) BB_FIELD_1(o_, f_, v_), BB_FIELD_3(o_, __VA_ARGS__)
#define BB_FIELD_5(o_, f_, v_, ...) BB_FIELD_1(o_, f_, v_), BB_FIELD_4(o_, __VA_ARGS__)
#define BB_FIELD_6(o_, f_, v_, ...) BB_FIELD_1(o_, f_, v_), BB_FIELD_5(o_, __VA_ARGS__)
/* Chooses the macro of the number of pairs: an odd number of arguments has none. */
#define BB_FIELD_N(a_, b_, c_, d_, e_, f_, g_, h_, i_, j_, k_, l_, name_, ...) name_
#define BB_FIELDS(...)                                                                             \
	BB_FIELD_N(__VA_ARGS__, BB_FIELD_6, , BB_FIELD_5, , BB_FIELD_4, , BB_FIELD_3, ,            \
		   BB_FIELD_2, , BB_FIELD_1, , )
#define assert_fields(o_, ...) ((void)(BB_FIELDS(__VA_ARGS__)(o_, __VA_ARGS__)))

#endif
