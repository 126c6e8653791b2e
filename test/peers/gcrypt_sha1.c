#include <gcrypt.h>

#include "sha1.h"

int gcrypt_digests(uint8_t *sums, struct messages messages)
{
	for (size_t i = 0; i < messages.count; i++)
		gcry_md_hash_buffer(GCRY_MD_SHA1, sums + i * SUM_SIZE,
		                    next_message(messages, sums, i), messages.size);
	return 1;
}

int gcrypt_key(uint8_t *key, size_t key_size, struct derivation d)
{
	return !gcry_kdf_derive(d.password, d.password_size, GCRY_KDF_PBKDF2, GCRY_MD_SHA1,
	                        d.salt, d.salt_size, d.iterations, key_size, key);
}
