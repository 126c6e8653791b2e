#include <openssl/evp.h>

#include "sectors.h"

void *openssl_open(int encrypt, const uint8_t *key)
{
	EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();

	if (cipher && !EVP_CipherInit_ex(cipher, EVP_aes_256_xts(), NULL, key, NULL, encrypt)) {
		EVP_CIPHER_CTX_free(cipher);
		return NULL;
	}
	return cipher;
}

int openssl_crypt(void *cipher, uint8_t *dst, const uint8_t *src, size_t n, size_t sector_size,
                  uint64_t first)
{
	for (size_t i = 0; i < n; i += sector_size) {
		uint8_t iv[IV_SIZE];
		int written;

		make_iv(iv, first + i / SECTOR_UNIT);
		if (!EVP_CipherInit_ex(cipher, NULL, NULL, NULL, iv, -1) ||
		    !EVP_CipherUpdate(cipher, dst + i, &written, src + i, sector_size) ||
		    (size_t)written != sector_size)
			return 0;
	}
	return 1;
}

void openssl_close(void *cipher) { EVP_CIPHER_CTX_free(cipher); }
