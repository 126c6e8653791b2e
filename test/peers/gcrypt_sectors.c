#include <gcrypt.h>

#include "sectors.h"

void *gcrypt_open(enum mode mode, const uint8_t *key, size_t key_size)
{
	static const int modes[] = {
		[ECB] = GCRY_CIPHER_MODE_ECB,
		[CBC] = GCRY_CIPHER_MODE_CBC,
		[CTR] = GCRY_CIPHER_MODE_CTR,
		[XTS] = GCRY_CIPHER_MODE_XTS,
	};
	gcry_cipher_hd_t cipher;

	if (gcry_cipher_open(&cipher, GCRY_CIPHER_SERPENT256, modes[mode], 0))
		return NULL;
	if (gcry_cipher_setkey(cipher, key, key_size)) {
		gcry_cipher_close(cipher);
		return NULL;
	}
	return cipher;
}

int gcrypt_crypt(void *cipher, enum mode mode, int encrypt, uint8_t *dst, const uint8_t *src,
                 size_t n, size_t sector_size, uint64_t first)
{
	gcry_error_t error = 0;

	for (size_t i = 0; i < n && !error; i += sector_size) {
		uint8_t iv[IV_SIZE];

		make_iv(iv, first + i / SECTOR_UNIT);
		if (mode == CTR)
			error = gcry_cipher_setctr(cipher, iv, IV_SIZE);
		else if (mode != ECB)
			error = gcry_cipher_setiv(cipher, iv, IV_SIZE);
		if (error)
			break;
		if (encrypt)
			error = gcry_cipher_encrypt(cipher, dst + i, sector_size, src + i, sector_size);
		else
			error = gcry_cipher_decrypt(cipher, dst + i, sector_size, src + i, sector_size);
	}
	return !error;
}

void gcrypt_close(void *cipher) { gcry_cipher_close(cipher); }
